"""poke-env's orders in the simulator's words."""

from types import SimpleNamespace

import pytest
from poke_env.player.battle_order import DefaultBattleOrder, DoubleBattleOrder, SingleBattleOrder

from simul.env_worker.games.pokemon.opponents.players import scripted_battle, scripted_player
from tests.support.pokemon.recorded import recorded_seats

SEAT = recorded_seats("doubles/gen9randomdoublesbattle")[0]
LINES, REQUEST = next(record for record in SEAT.records if record[1] and "active" in record[1])


@pytest.mark.parametrize("kind", ["random", "max_base_power", "simple_heuristics"])
def test_a_locked_move_is_not_aimed(kind):
    (aimed, *_), other = (asked["moves"] for asked in REQUEST["active"])
    locked = {"moves": [{"move": aimed["move"], "id": aimed["id"]}], "trapped": True}
    battle = scripted_battle(kind, SEAT.role, 9, doubles=True)
    battle.feed(LINES)
    choice = scripted_player(kind, 9, doubles=True).choose(battle, {**REQUEST, "active": [locked, {"moves": other}]}, 1)
    assert choice.command.startswith("move 1, ")
    assert not choice.failure
