"""Situations told by a few lines: nothing stale, nothing of a foe that nobody has seen, the facts in their places."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

from simul.env_worker.games.pokemon.tables import layout
from simul.env_worker.games.pokemon.tables.layout import Extras
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary
from tests.support.pokemon.recorded import recorded_seats
from tests.support.pokemon.requests import team_of, turn

SEATS = [
    seat
    for names in ("gen?randombattle", "gen9bssregi", "situations/*", "gen9randomdoublesbattle")
    for seat in recorded_seats(names)
]


@pytest.mark.parametrize("battle_format", sorted({seat.format for seat in SEATS}))
def test_what_was_kept_equals_what_is_written_anew(views, battle_format):
    for seat in [one for one in SEATS if one.format == battle_format]:
        view = views.open(battle_format, seat.seat, Extras(sets="random" in battle_format))
        for lines, request in seat.records:
            if request is not None:
                view.see(lines, request, anew="teamPreview" not in request)
        assert view.errors == {}


def test_who_was_dragged_in_and_out_again_is_written_anew(views):
    """Nothing in its request entry says so, but its poison begins anew."""
    lines, request = deepcopy(next(record for record in recorded_seats("gen9randombattle")[0].records if record[1]))
    lead, bench = request["side"]["pokemon"][:2]
    bench["condition"] += " tox"
    view = views.open("gen9randombattle", int(lead["ident"][1]) - 1)

    def stage_after(*heard: str) -> float:
        return view.see("\n".join(heard), request).read("own.1.toxic_stage")[0]

    hurt = f"|-damage|{bench['ident'].replace(':', 'a:')}|{bench['condition']}|[from] psn"
    assert stage_after(lines) == 0.0
    assert stage_after(drag(bench), hurt, "|upkeep", drag(lead)) == pytest.approx(1 / 15, abs=1e-3)
    assert stage_after(drag(bench), drag(lead)) == 0.0
    assert view.errors == {}


def drag(entry: dict) -> str:
    return f"|drag|{entry['ident'].replace(':', 'a:')}|{entry['details']}|{entry['condition']}"


def test_an_unseen_side_is_blank(views):
    request = next(request for _, request in recorded_seats("gen9randombattle")[0].records if request)
    seen = views.open("gen9randombattle", 0).see("", request)  # no line at all: nobody is known
    assert not seen.observation[layout.FOE_START : layout.MOVE_START].any()
    assert seen.read("global.foe_side.alive") == [1.0]
    assert seen.read("global.foe_side.team_hp") == [1.0]


def test_a_foes_stats_are_estimated_as_a_random_battles(views):
    """Garchomp at level 76, as the simulator's own request shows it."""
    request = turn(team_of("Absol"))
    seen = views.open("gen9randombattle", 0).see("|switch|p2a: Garchomp|Garchomp, L76, M|100/100", request)
    stats = (289, 242, 188, 166, 173, 199)
    assert seen.read("foe.0.stats") == [np.float16(stat / 500) for stat in stats]


def test_lines_that_cannot_be_taken_are_counted_and_skipped(views):
    view = views.open("gen9randombattle", 0)
    lines = "|nonsense|x\n|-damage|p2a: Nobody\n|turn|3\n|tie\n|tier|[Gen 9] Random Battle"
    assert view.see(lines, turn(team_of("Absol"))).facts.turn == 3
    assert view.errors == {"nonsense": 1, "-damage": 1}


def test_warnings_and_open_team_sheets_are_passed_over(views):
    view = views.open("gen9randombattle", 0)
    lines = "|bigerror|You will auto-tie if the battle doesn't end in 50 turns.\n|showteam|p2|Rex|Ditto||limber|pound"
    assert view.see(lines, turn(team_of("Absol"))).read("foe.0.present") == [0.0]
    assert view.errors == {}


@pytest.mark.parametrize(
    ("name", "line", "item"),
    [
        ("Mewtwo", "|-mega|p2a: Mewtwo|Mewtwo|Mewtwonite Y", "mewtwonitey"),
        ("Groudon", "|-primal|p2a: Groudon|Red Orb", "redorb"),
        ("Necrozma-Dusk-Mane", "|-burst|p2a: Necrozma|Necrozma|Ultranecrozium Z", "ultranecroziumz"),
        ("Rayquaza", "|-mega|p2a: Rayquaza|Rayquaza|", None),
    ],
)
def test_what_a_foe_evolves_with_is_its_item(views, name, line, item):
    view = views.open("gen7customgame", 0)
    came = f"|switch|p2a: {name.split('-')[0]}|{name}, L80|100/100"
    found = view.see(f"{came}\n{line}", turn(team_of("Absol")))
    assert found.read("foe.0.item") == [vocabulary().item[item] if item else 0]
    assert view.errors == {}


@pytest.mark.parametrize(
    ("line", "left", "right"),
    [
        ("-block|p2a: Blissey|ability: Aroma Veil|[of] p2b: Ditto", "", "aromaveil"),
        ("-block|p2b: Ditto|ability: Sweet Veil|[of] p2b: Ditto", "", "sweetveil"),
        ("-copyboost|p2a: Blissey|p2b: Ditto|[from] ability: Costar", "costar", ""),
        ("-clearboost|p2a: Blissey|[from] ability: Curious Medicine|[of] p2b: Ditto", "", "curiousmedicine"),
    ],
)
def test_an_ability_that_protects_or_changes_a_partner_is_its_owners(views, line, left, right):
    view = views.open("gen9doublescustomgame", 0)
    came = [f"|switch|p2{slot}: {name}|{name}, L80|100/100" for slot, name in (("a", "Blissey"), ("b", "Ditto"))]
    found = view.see("\n".join([*came, f"|{line}"]), turn(team_of("Absol", "Slowbro")))
    rows = vocabulary().ability
    assert [found.read(f"foe.{k}.ability")[0] for k in (0, 1)] == [rows.get(left, 0), rows.get(right, 0)]
    assert view.errors == {}


def test_an_item_that_protects_is_the_protected_ones(views):
    view = views.open("gen9customgame", 0)
    came = "|switch|p2a: Blissey|Blissey, L80|100/100"
    found = view.see(f"{came}\n|-block|p2a: Blissey|item: Ability Shield", turn(team_of("Absol")))
    assert found.read("foe.0.item") == [vocabulary().item["abilityshield"]]
