"""What the encoder writes: nothing stale, nothing hidden, the facts in their places."""

from copy import deepcopy

import numpy as np
import pytest

from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from simul.env_worker.games.pokemon.encoding.actions import legal_choices
from simul.env_worker.games.pokemon.encoding.encoder import SeatEncoder
from simul.env_worker.games.pokemon.tables import layout
from tests.support.pokemon.recorded import encoded, recorded_seats

FULL = layout.Extras(sets=True)
SLICES = {part.name: part for part in layout.slices()}


def read(row: np.ndarray, name: str) -> list[float]:
    part = SLICES[name]
    return row[part.start : part.start + part.size].tolist()


@pytest.mark.parametrize(
    "seat",
    [*recorded_seats(), *recorded_seats("gen9bssregi")],
    ids=lambda seat: f"{seat.format}-{seat.battle}-{seat.role}",
)
def test_what_was_kept_equals_what_is_written_anew(seat):
    for battle, request, choices, kept in encoded(seat, FULL):
        np.testing.assert_array_equal(kept, SeatEncoder(battle, seat.gen, FULL).encode(request, choices))


def test_who_was_dragged_in_and_out_again_is_written_anew():
    """Nothing in its request entry says so, but its poison begins anew."""
    lines, request = deepcopy(next(record for record in recorded_seats("gen9randombattle")[0].records if record[1]))
    lead, bench = request["side"]["pokemon"][:2]
    bench["condition"] += " tox"
    battle = SeatBattle(lead["ident"][:2], 9)
    encoder = SeatEncoder(battle, 9)

    def stage_after(*heard: str) -> float:
        battle.feed("\n".join(heard))
        battle.sync(request)
        row = encoder.encode(request, legal_choices(request, battle.position))
        return read(row, f"own.{battle.position(bench['ident'])}.toxic_stage")[0]

    hurt = f"|-damage|{bench['ident'].replace(':', 'a:')}|{bench['condition']}|[from] psn"
    assert stage_after(lines) == 0.0
    assert stage_after(drag(bench), hurt, "|upkeep", drag(lead)) == pytest.approx(1 / 15, abs=1e-3)
    assert stage_after(drag(bench), drag(lead)) == 0.0
    assert battle.parse_errors == {}


def drag(entry: dict) -> str:
    return f"|drag|{entry['ident'].replace(':', 'a:')}|{entry['details']}|{entry['condition']}"


def test_an_observation_is_the_callers_own():
    rows, copies = [], []
    for one in encoded(recorded_seats("gen9randombattle")[0]):
        rows.append(one.row)
        copies.append(one.row.copy())
    assert rows[0].dtype == np.float16
    assert rows[0].shape == (layout.OBSERVATION_SIZE,)
    np.testing.assert_array_equal(np.stack(rows), np.stack(copies))


def test_an_unseen_side_is_blank():
    seat = recorded_seats("gen9randombattle")[0]
    battle = SeatBattle(seat.role, 9)
    request = next(request for _, request in seat.records if request)
    battle.sync(request)  # no line at all: nobody is known
    row = SeatEncoder(battle, 9).encode(request, legal_choices(request, battle.position))
    assert not row[layout.FOE_START : layout.MOVE_START].any()
    assert read(row, "global.foe_side.alive") == [1.0]
    assert read(row, "global.foe_side.team_hp") == [1.0]
