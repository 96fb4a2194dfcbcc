"""Team preview, pick by pick: what may be picked, what is seen, what is not; and the battle that follows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from poke_env.data import to_id_str

from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary
from tests.support.pokemon.recorded import RecordedSeat, recorded_seats
from tests.support.pokemon.views import SeatToSee, Seen, Told, View, Views

SEATS = recorded_seats("gen9bssregi")
MINE, OTHER = SEATS[0], SEATS[1]
Opened = tuple[View, Seen]


def request_of(seat: RecordedSeat) -> dict[str, Any]:
    request = seat.records[0][1]
    assert request is not None
    return request


def preview_of(views: Views, **changed: Any) -> Opened:
    view = views.open("gen9bssregi", MINE.seat)
    return view, view.see(MINE.records[0][0], request_of(MINE) | changed)


def species_of(seen: Seen, side: str) -> list[float]:
    return [seen.read(f"{side}.{i}.species")[0] for i in range(6)]


def picked(view: View, *actions: int) -> Seen | str:
    *_, answer = [view.act(action) for action in actions]
    return answer


def test_three_of_six_are_picked_in_order_and_sent_at_once(views):
    view, first = preview_of(views)
    second, third = view.act(4), view.act(0)
    assert [seen.legal for seen in (first, second, third)] == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 5], [1, 2, 3, 5]]
    assert [seen.pick for seen in (first, second, third)] == [1, 2, 3]
    assert view.act(2) == "team 5,1,3"
    again = view.refuse()
    assert again.legal == [1, 3, 5]
    assert view.act(5) == "team 5,1,6"


def test_four_of_six_in_doubles(views):
    seat = recorded_seats("gen9vgc2025regi")[0]
    view = views.open(seat.format, seat.seat)
    first = view.see(*seat.records[0])
    assert first.legal == [1, 2, 3, 4, 5, 6]
    assert first.read("global.preview_picks") == [np.float16(4 / 6)]
    assert picked(view, 6, 1, 2, 4) == "team 6,1,2,4"


def test_where_all_come_only_the_lead_is_picked(views):
    view, _ = preview_of(views, maxChosenTeamSize=None)
    assert view.act(3) == "team 4"


def test_more_may_come_than_there_are(views):
    side = request_of(MINE)["side"]
    view, _ = preview_of(views, side=side | {"pokemon": side["pokemon"][:2]})
    assert picked(view, 1, 0) == "team 2,1"


def test_what_a_pick_sees(views):
    view, first = preview_of(views)
    second = view.act(4)
    assert first.read("global.preview") == second.read("global.preview") == [1.0]
    assert first.read("global.preview_picks") == [np.float16(3 / 6)]
    assert first.read("global.preview_order") == [0.0] * 6
    assert second.read("global.preview_order") == [0, 0, 0, 0, np.float16(1 / 6), 0]
    assert second.read("mask")[:6] == [1, 1, 1, 1, 0, 1]
    assert first.facts.standing == (6.0, 6.0, 6.0, 6.0)
    rows = vocabulary().species
    names = [entry["details"].split(",")[0] for entry in request_of(MINE)["side"]["pokemon"]]
    assert species_of(first, "own") == [rows[to_id_str(name)] for name in names]
    for i in range(6):
        assert first.read(f"own.{i}.active") == first.read(f"foe.{i}.active") == [0.0]
        assert first.read(f"foe.{i}.present") == first.read(f"foe.{i}.hp") == [1.0]
        assert first.read(f"foe.{i}.revealed") == [0.0]


def test_foes_are_seen_by_species_alone(views):
    _, seen = preview_of(views)
    shown = [entry["details"] for entry in request_of(OTHER)["side"]["pokemon"]]
    names = ["Urshifu" if "Urshifu" in details else details.split(",")[0] for details in shown]  # not which of the two
    assert species_of(seen, "foe") == [vocabulary().species[to_id_str(name)] for name in names]
    for i in range(6):
        assert seen.read(f"foe.{i}.item") == [0.0]
        assert seen.read(f"foe.{i}.moves") == [0.0] * 4
        assert seen.read(f"foe.{i}.tera_type") == [0.0]


def test_a_foe_may_show_fewer_than_six(views):
    lines = MINE.records[0][0].split("\n")
    shown = [line for line in lines if line.startswith(f"|poke|{OTHER.role}|")]
    told = "\n".join(line for line in lines if line not in shown[2:])
    seen = views.open("gen9bssregi", MINE.seat).see(told, request_of(MINE))
    assert [seen.read(f"foe.{i}.present")[0] for i in range(6)] == [1.0] * 2 + [0.0] * 4
    assert seen.read("global.foe_side.alive") == [np.float16(2 / 6)]


def test_the_battle_goes_on_showing_whom_preview_showed(views):
    seen_seats = views.seen(SeatToSee(s.format, s.seat, [Told(*record) for record in s.records]) for s in SEATS)
    whole = 0
    for seat, seen_seat in zip(SEATS, seen_seats, strict=True):
        met: set[str] = set()
        rows = iter([seen for seen in seen_seat.decisions if not seen.pick])
        for lines, request in seat.records:
            met |= set(re.findall(rf"^\|(?:switch|drag|replace)\|p{2 - seat.seat}a: ([^|]+)", lines, re.MULTILINE))
            if request is None or "teamPreview" in request:
                continue
            seen = next(rows)
            assert seen.read("global.preview") == [0.0]
            own = [seen.read(f"own.{i}.present")[0] for i in range(6)]
            assert own == [1.0] * 3 + [0.0] * 3, "those left behind are gone"
            assert sum(seen.read(f"own.{i}.active")[0] for i in range(3)) == 1.0
            revealed = [seen.read(f"foe.{i}.revealed")[0] for i in range(6)]
            assert revealed == [1.0] * len(met) + [0.0] * (6 - len(met))
            assert sum(seen.read(f"foe.{i}.present")[0] for i in range(6)) == (len(met) if len(met) >= 3 else 6)
            ids = [row for row in species_of(seen, "foe") if row]
            assert len(set(ids)) == len(ids)
            assert seen.read("global.foe_side.alive")[0] <= np.float16(3 / 6)
            whole += len(met) == 3
    assert whole > 0
