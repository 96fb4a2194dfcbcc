"""Turns asleep, the stage of bad poison and pp, as a player would count them."""

from __future__ import annotations

import pytest
from poke_env.battle.pokemon import Pokemon

from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from simul.env_worker.games.pokemon.encoding.pokemon_features import own_pp
from tests.support.pokemon.recorded import battle_of, recorded_seats, replay

ASLEEP = "|-damage|p2a: Snorlax|100/100 slp|\n|-status|p2a: Snorlax|slp|[from] move: Spore"
RESTS = "|-status|p2a: Snorlax|slp|[from] move: Rest"
CANNOT = "|cant|p2a: Snorlax|slp"
TALKS = "|move|p2a: Snorlax|Sleep Talk|p2a: Snorlax\n|move|p2a: Snorlax|Body Slam|p1a: Absol|[from] move: Sleep Talk"
OUT_AND_IN = "|switch|p2a: Blissey|Blissey, L80, F|100/100\n|switch|p2a: Snorlax|Snorlax, L80, M|100/100 {}"


def snorlax(battle: SeatBattle) -> Pokemon:
    return battle.opponent_team["p2: Snorlax"]


def numbers(battle: SeatBattle) -> tuple[float, ...]:
    return battle.counters.ailment_numbers(snorlax(battle))


def test_a_turn_of_sleep_talk_is_one_turn_asleep():
    battle = battle_of(9, ASLEEP, CANNOT, TALKS, CANNOT)
    assert numbers(battle) == (2 / 7, 0.0, 0.0)
    battle.feed("|-curestatus|p2a: Snorlax|slp|[msg]")
    assert numbers(battle) == (0.0, 0.0, 0.0)
    battle.feed(RESTS)
    assert numbers(battle) == (0.0, 1.0, 0.0)


def test_a_sleeper_that_flinches_sleeps_no_turn_less():
    assert numbers(battle_of(9, ASLEEP, "|cant|p2a: Snorlax|flinch")) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("gen", "left"), [(4, 2 / 7), (5, 0.0), (6, 2 / 7)])
def test_in_gen_5_sleep_begins_anew_with_a_switch(gen, left):
    assert numbers(battle_of(gen, ASLEEP, CANNOT, CANNOT, OUT_AND_IN.format("slp"))) == (left, 0.0, 0.0)


def test_bad_poison_grows_and_begins_anew_with_a_switch():
    hurt = "|-damage|p2a: Snorlax|90/100 tox|[from] psn\n|upkeep"
    battle = battle_of(9, "|-status|p2a: Snorlax|tox", hurt, hurt, "|-damage|p2a: Snorlax|70/100 tox")
    assert numbers(battle) == (0.0, 0.0, 2 / 15)
    battle.feed("|upkeep")  # Poison Heal at full hp
    assert numbers(battle) == (0.0, 0.0, 3 / 15)
    battle.feed(OUT_AND_IN.format("tox"))
    assert numbers(battle) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("ability", "left"), [("", 23 / 24), ("|-ability|p1a: Absol|Pressure", 22 / 24)])
def test_pressure_costs_a_foe_twice_the_pp(ability, left):
    battle = battle_of(9, *([ability] if ability else []), "|move|p2a: Snorlax|Body Slam|p1a: Absol")
    assert battle.counters.pp_left([snorlax(battle).moves["bodyslam"]]) == [left]


@pytest.mark.parametrize("gen", [2, 7, 8])
def test_pp_is_what_the_request_says(gen):
    """Dynamax, Z-moves and gen 2's lines hide what a move costs; the next request tells."""
    checked = 0
    for seat in recorded_seats(f"gen{gen}randombattle"):
        for battle, request in replay(seat):
            offered = request["active"][0]["moves"] if "active" in request else ()
            out = next(entry for entry in request["side"]["pokemon"] if entry["active"])
            left = own_pp(battle.counters, battle.team[out["ident"]], out["moves"])
            for move, fraction in zip(offered, left):
                if "pp" in move and len(offered) == len(out["moves"]):
                    assert fraction == pytest.approx(move["pp"] / move["maxpp"])
                    checked += 1
    assert checked > 100
