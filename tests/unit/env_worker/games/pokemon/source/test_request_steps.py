"""Team preview, pick by pick: what may be picked, what is seen, what is not."""

from __future__ import annotations

import numpy as np
import pytest
from poke_env.data import to_id_str

from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from simul.env_worker.games.pokemon.encoding.actions import picks_wanted
from simul.env_worker.games.pokemon.source.request_steps import PreviewSteps
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary
from tests.support.pokemon.recorded import RecordedSeat, encoded, preview_of, recorded_seats, replay
from tests.unit.env_worker.games.pokemon.encoding.test_encoder import read

SEATS = recorded_seats("gen9bssregi")
MINE, OTHER = SEATS[0], SEATS[1]


def ids_of(row: np.ndarray, side: str) -> list[int]:
    return [int(read(row, f"{side}.{i}.species")[0]) for i in range(6)]


def request_of(seat: RecordedSeat) -> dict:
    request = seat.records[0][1]
    assert request is not None
    return request


def test_three_of_six_are_picked_in_order_and_sent_at_once():
    preview = preview_of(MINE)
    masks = []
    for action, words in ((4, None), (0, None), (2, "team 5,1,3")):
        masks.append(list(preview.choices.mask[:6]))
        assert not any(preview.choices.mask[6:])
        assert not preview.complete
        assert preview.pick(action) == words
    assert preview.complete
    assert masks == [[1] * 6, [1, 1, 1, 1, 0, 1], [0, 1, 1, 1, 0, 1]]


def test_where_all_come_only_the_lead_is_picked():
    request = request_of(MINE) | {"maxChosenTeamSize": None}
    assert picks_wanted(request) == 1
    battle = SeatBattle(MINE.role, 9)
    battle.feed(MINE.records[0][0])
    preview = PreviewSteps(battle, 9, request)
    assert preview.pick(3) == "team 4"
    assert preview.complete


def test_more_may_come_than_there_are():
    request = request_of(MINE)
    few = request | {"side": request["side"] | {"pokemon": request["side"]["pokemon"][:2]}}
    assert picks_wanted(few) == 2


def test_what_a_pick_sees():
    preview = preview_of(MINE)
    first, standing = preview.encode()
    preview.pick(4)
    second, _ = preview.encode()
    assert read(first, "global.preview") == read(second, "global.preview") == [1.0]
    assert read(first, "global.preview_picks") == [np.float16(3 / 6)]
    assert read(first, "global.preview_order") == [0.0] * 6
    assert read(second, "global.preview_order") == [0, 0, 0, 0, np.float16(1 / 6), 0]
    assert read(second, "mask")[:6] == [1, 1, 1, 1, 0, 1]
    assert standing == (6.0, 6.0, 6.0, 6.0)
    rows = vocabulary().species
    names = [entry["details"].split(",")[0] for entry in request_of(MINE)["side"]["pokemon"]]
    assert ids_of(first, "own") == [rows[to_id_str(name)] for name in names]
    for i in range(6):
        assert read(first, f"own.{i}.active") == read(first, f"foe.{i}.active") == [0.0]
        assert read(first, f"foe.{i}.present") == read(first, f"foe.{i}.hp") == [1.0]
        assert read(first, f"foe.{i}.revealed") == [0.0]


def test_foes_are_seen_by_species_alone():
    row, _ = preview_of(MINE).encode()
    shown = [entry["details"] for entry in request_of(OTHER)["side"]["pokemon"]]
    names = ["Urshifu" if "Urshifu" in details else details.split(",")[0] for details in shown]  # not which of the two
    assert ids_of(row, "foe") == [vocabulary().species[to_id_str(name)] for name in names]
    for i, details in enumerate(shown):
        assert details.split(",")[0].split("-")[0] in MINE.records[0][0]
        assert read(row, f"foe.{i}.item") == [0.0]
        assert read(row, f"foe.{i}.moves") == [0.0] * 4
        assert read(row, f"foe.{i}.tera_type") == [0.0]


@pytest.mark.parametrize("seat", SEATS, ids=lambda seat: f"{seat.battle}-{seat.role}")
def test_the_battle_goes_on_showing_whom_preview_showed(seat):
    for battle, request, _, row in encoded(seat):
        assert read(row, "global.preview") == [0.0]
        assert len(battle.team) == 3, "those left behind are gone"
        for entry in request["side"]["pokemon"]:  # also where a Zoroark leads in another's shape
            assert read(row, f"own.{battle.position(entry['ident'])}.active") == [entry["active"]]
        met = len(battle.opponent_team)
        revealed = [read(row, f"foe.{i}.revealed")[0] for i in range(6)]
        present = sum(read(row, f"foe.{i}.present")[0] for i in range(6))
        assert revealed == [1.0] * met + [0.0] * (6 - met)
        assert present == (met if met >= 3 else 6)
        ids = [name for name in ids_of(row, "foe") if name]
        assert len(set(ids)) == len(ids)
        assert read(row, "global.foe_side.alive")[0] <= np.float16(3 / 6)


def test_some_recorded_battle_shows_all_that_were_brought():
    assert any(len(battle.opponent_team) == 3 for seat in SEATS for battle, _ in replay(seat))


def test_a_refused_team_is_asked_again_without_its_last_pick():
    preview = preview_of(MINE)
    for action in (4, 0, 2):
        preview.pick(action)
    preview.refuse()
    assert list(preview.choices.mask[:6]) == [0, 1, 0, 1, 0, 1]
    assert preview.pick(5) == "team 5,1,6"
