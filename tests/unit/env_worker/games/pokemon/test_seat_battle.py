"""The trimmed battle keeps exactly the state of poke-env's own."""

import pytest
from poke_env.battle.battle import Battle

from env_worker.games.pokemon.seat_battle import SKIPPED, SeatBattle
from tests.golden.pokemon.recorded import recorded_seats


def pokemon_state(mon) -> dict:
    state = {name: getattr(mon, name) for name in type(mon).__slots__}
    state["_moves"] = {name: (move.current_pp, move.is_last_used) for name, move in mon.moves.items()}
    for name in ("_preparing_move", "_preparing_target"):
        state[name] = bool(state[name])
    return state


def battle_state(battle) -> dict:
    names = [
        "_turn",
        "_weather",
        "_fields",
        "_side_conditions",
        "_opponent_side_conditions",
        "_used_tera",
        "_opponent_used_tera",
    ]
    return {
        **{name: getattr(battle, name) for name in names},
        "own": {ident: pokemon_state(mon) for ident, mon in battle.team.items()},
        "foe": {ident: pokemon_state(mon) for ident, mon in battle.opponent_team.items()},
    }


@pytest.mark.parametrize("seat", recorded_seats(), ids=lambda seat: f"{seat.format}-{seat.battle}-{seat.role}")
def test_same_state_as_the_stock_battle_at_every_request(seat):
    ours = SeatBattle(seat.role, seat.gen)
    stock = Battle("battle", seat.role, None, seat.gen)
    stock._player_role = seat.role
    for lines, request in seat.records:
        if request is None:
            continue
        ours.feed(lines)
        ours.sync(request)
        for line in lines.split("\n"):
            event = line.split("|")
            if len(event) > 1 and event[1] not in SKIPPED:
                stock.parse_message(event)
        stock.parse_request(request)
        assert battle_state(ours) == battle_state(stock)
    assert ours.parse_errors == {}
    assert len(ours._replay_data) == 0


def test_a_line_poke_env_cannot_take_is_counted_and_skipped():
    battle = SeatBattle("p1", 9)
    battle.feed("|nonsense|x\n|-damage|p2a: Nobody\n|turn|3\n|tie\n|tier|[Gen 9] Random Battle")
    assert battle.parse_errors == {"nonsense": 1, "-damage": 1}
    assert battle.turn == 3
    assert not battle.finished
