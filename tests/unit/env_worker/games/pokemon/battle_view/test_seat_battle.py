"""The trimmed battle keeps exactly the state of poke-env's own, slot by slot."""

import pytest
from poke_env.battle.battle import Battle

from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from tests.support.pokemon.recorded import recorded_seats
from tests.support.states import (
    OF_THE_REQUEST,
    OF_THE_ROOM,
    compare_with_stock,
    slots_of,
)

NAMES = ("gen?randombattle", "gen9bssregi", "situations/*", "gen9randomdoublesbattle", "gen[789]doublescustomgame.four")
SEATS = [seat for name in NAMES for seat in recorded_seats(name)]
PUBLIC = "|bigerror|You will auto-tie if the battle doesn't end in 50 turns.\n|showteam|p2|Rex|Ditto||limber|pound"


@pytest.mark.parametrize("seat", SEATS, ids=lambda seat: f"{seat.format}-{seat.battle}-{seat.role}")
def test_same_state_as_the_stock_battle_at_every_request(seat):
    assert [different for different in compare_with_stock(seat, bot=False) if different] == []


@pytest.mark.parametrize("seat", SEATS, ids=lambda seat: f"{seat.format}-{seat.battle}-{seat.role}")
def test_a_bot_has_what_the_request_says_too(seat):
    assert [different for different in compare_with_stock(seat, bot=True, every=4) if different] == []


def test_what_is_not_compared_is_there():
    """A name that poke-env gives up must not hide another one."""
    assert slots_of(Battle("battle", "p1", None, 9)) >= OF_THE_REQUEST | OF_THE_ROOM


def test_a_line_poke_env_cannot_take_is_counted_and_skipped():
    battle = SeatBattle("p1", 9)
    battle.feed("|nonsense|x\n|-damage|p2a: Nobody\n|turn|3\n|tie\n|tier|[Gen 9] Random Battle")
    assert battle.parse_errors == {"nonsense": 1, "-damage": 1}
    assert battle.turn == 3
    assert not battle.finished


def test_warnings_and_open_team_sheets_are_passed_over():
    battle = SeatBattle("p1", 9)
    battle.feed(PUBLIC)
    assert battle.parse_errors == {}
    assert battle.opponent_team == {}
