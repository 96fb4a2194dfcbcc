"""What a foe may still have: true to the sets that the simulator draws from, refused where there are none."""

from __future__ import annotations

from typing import Any

import pytest
from simul.env_worker.games.pokemon.battle_view.counters import move_key
from simul.env_worker.games.pokemon.encoding.profiles import move_row, type_row

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.env_worker.games.pokemon.tables.layout import POSSIBLE_MOVES
from simul.env_worker.games.pokemon.tables.random_sets import known_sets, possibilities
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary
from tests.support.pokemon.recorded import RecordedSeat, recorded_seats, replay

ARBOK = {"species": "arbok", "base": "arbok", "level": 87}
MOVES = slice(0, POSSIBLE_MOVES)
CHANCES = slice(POSSIBLE_MOVES, 2 * POSSIBLE_MOVES)


def chances(gen: int, shown: tuple[str, ...] = (), tera: int = 0, **foe: Any) -> dict[str, float]:
    numbers = possibilities(gen, **foe, shown=shown, ability=0, tera=tera)
    names = {row: name for name, row in vocabulary().move.items()}
    return {names[int(row)]: chance for row, chance in zip(numbers[MOVES], numbers[CHANCES]) if row}


def test_what_every_set_has_is_certain():
    """Arbok in gen 9: one set of six moves, two of just four; all have earthquake and gunk shot."""
    roles = known_sets(9)["arbok"]
    assert sorted(len(role.moves) for role in roles) == [4, 4, 6]
    found = chances(9, **ARBOK)
    assert found["gunkshot"] == found["earthquake"] == pytest.approx((1 + 1 + 4 / 6) / 3)
    assert found["trailblaze"] == pytest.approx(1 / 3)


def test_a_shown_move_rules_sets_out_and_is_no_possibility_any_more():
    assert chances(9, ("trailblaze",), **ARBOK) == {"coil": 1.0, "earthquake": 1.0, "gunkshot": 1.0}
    assert chances(9, ("trailblaze", "coil", "earthquake", "gunkshot"), **ARBOK) == {}


def test_a_shown_tera_type_rules_sets_out():
    assert chances(9, tera=type_row("Grass"), **ARBOK) == dict.fromkeys(
        ("coil", "earthquake", "gunkshot", "trailblaze"), 1.0
    )


def test_a_move_that_no_set_has_says_nothing():
    assert chances(9, ("splash",), **ARBOK) == chances(9, **ARBOK)


def test_nothing_is_known_of_a_species_without_sets():
    assert chances(1, species="arceus", base="arceus", level=80) == {}


def test_a_mega_evolution_hides_behind_its_base_species():
    levels = {role.level for role in known_sets(6)["charizard"]}
    assert {role.level for role in known_sets(6)["charizardmegax"]} < levels


@pytest.mark.parametrize("battle_format", ["gen9ou", "gen9randomdoublesbattle", "gen9babyrandombattle"])
def test_other_formats_are_refused(battle_format):
    with pytest.raises(ConfigError, match=f"gen9randombattle, not of {battle_format}: set it to false"):
        pokemon_spec(PokemonConfig(format=battle_format, set_knowledge=True))


def pairs() -> list[tuple[RecordedSeat, RecordedSeat]]:
    seats = {(seat.format, seat.battle, seat.seat): seat for seat in recorded_seats()}
    return [(seat, seats[f, b, 1 - s]) for (f, b, s), seat in seats.items() if (f, b, 1 - s) in seats]


def test_the_truth_is_as_likely_as_was_said():
    """Over recorded battles, of both seats: as many moves are there as the chances add up to, and few go unsaid."""
    hidden = said = expected = 0.0
    for seat, other in pairs():
        team = {mon["ident"]: mon for mon in next(r for _, r in other.records if r)["side"]["pokemon"]}
        for battle, _ in replay(seat):
            for ident, mon in battle.opponent_team.items():
                if mon.transformed or ident not in team:
                    continue
                shown = tuple(mon._moves._base_moves)
                numbers = possibilities(seat.gen, mon._species, mon.base_species, mon._level, shown, 0, 0)
                true = {move_row(move) for move in team[ident]["moves"] if move_key(move) not in shown}
                hidden += len(true)
                said += len(true & set(map(int, numbers[MOVES])))
                expected += sum(numbers[CHANCES])
    assert hidden > 5000
    assert said / hidden > 0.9
    assert expected / said == pytest.approx(1.0, abs=0.05)
