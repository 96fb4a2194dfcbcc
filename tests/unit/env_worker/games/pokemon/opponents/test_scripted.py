"""poke-env's orders in the simulator's words."""

from types import SimpleNamespace

import pytest
from poke_env.player.battle_order import DefaultBattleOrder, DoubleBattleOrder, SingleBattleOrder

from simul.env_worker.games.pokemon.opponents.scripted import ScriptedPlayer
from simul.env_worker.games.pokemon.opponents.stock_battle import StockDoubleBattle
from tests.support.pokemon.recorded import recorded_seats

SEAT = recorded_seats("gen9randomdoublesbattle")[0]
LINES, REQUEST = next(record for record in SEAT.records if record[1] and "active" in record[1])


@pytest.mark.parametrize("kind", ["random", "max_base_power", "simple_heuristics"])
def test_a_locked_move_is_not_aimed(kind):
    (aimed, *_), other = (asked["moves"] for asked in REQUEST["active"])
    locked = {"moves": [{"move": aimed["move"], "id": aimed["id"]}], "trapped": True}
    battle = StockDoubleBattle(SEAT.role, 9)
    battle.feed(LINES)
    choice = ScriptedPlayer(kind, doubles=True).choose(battle, {**REQUEST, "active": [locked, {"moves": other}]}, 1)
    assert choice.command.startswith("move 1, ")
    assert not choice.failure


@pytest.mark.parametrize(("defaults", "command"), [((False, True), "move 1, default"), ((True, False), "default")])
def test_the_default_order_of_the_right_slot_leaves_the_left_its_own(defaults, command):
    battle, player = StockDoubleBattle(SEAT.role, 9), ScriptedPlayer("random", doubles=True)
    battle.feed(LINES)
    player._player = SimpleNamespace(choose_move=lambda battle: DoubleBattleOrder(*[
        DefaultBattleOrder() if default else SingleBattleOrder(moves[0])
        for default, moves in zip(defaults, battle.available_moves)
    ]))  # fmt: skip
    choice = player.choose(battle, REQUEST, 1)
    assert (choice.command, choice.defaulted, choice.failure) == (command, True, "")
