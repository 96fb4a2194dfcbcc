"""What a foe may still have: true to the sets that the simulator draws from, and nothing where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from poke_env.data import to_id_str

from simul.common.config.games.pokemon import PokemonConfig
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.env_worker.games.pokemon.tables import layout
from simul.env_worker.games.pokemon.tables.layout import Extras
from simul.env_worker.games.pokemon.tables.random_sets import known_sets
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary
from tests.support.pokemon.audit.view import move_row
from tests.support.pokemon.requests import team_of, turn
from tests.support.pokemon.vectors import Seat, read_vectors

SETS = Extras(0, sets=True)
ARBOK = "|switch|p2a: Arbok|Arbok, L87, M|100/100"
SLICES = {part.name: slice(part.start, part.start + part.size) for part in layout.slices(SETS)}


@pytest.fixture
def chances(views):
    """Of the moves that a foe may have and has not shown, after these lines."""
    names = {row: name for name, row in vocabulary().move.items()}

    def found(*lines: str) -> dict[str, float]:
        seen = views.open("gen9randombattle", 0, SETS).see("\n".join(lines), turn(team_of("Absol")))
        rows, likely = (seen.observation[SLICES[name]] for name in ("set.0.moves", "set.0.moves_chance"))
        return {names[int(row)]: float(chance) for row, chance in zip(rows, likely) if row}

    return found


def shows(*moves: str) -> list[str]:
    return [ARBOK, *(f"|move|p2a: Arbok|{move}|p2a: Arbok" for move in moves)]


def test_a_move_that_no_set_has_says_nothing(chances):
    assert chances(*shows("Splash")) == chances(ARBOK)


def test_nothing_is_known_of_a_species_without_sets(chances):
    assert chances("|switch|p2a: Caterpie|Caterpie, L80, M|100/100") == {}


def test_a_mega_evolution_hides_behind_its_base_species():
    levels = {role.level for role in known_sets(6)["charizard"]}
    assert {role.level for role in known_sets(6)["charizardmegax"]} < levels


@pytest.mark.parametrize("gen", [7, 9])
def test_a_greninja_may_be_one_with_battle_bond(gen):
    """Lines call both by the same name."""
    assert set(known_sets(gen)["greninjabond"]) < set(known_sets(gen)["greninja"])


@pytest.mark.parametrize("battle_format", ["gen9ou", "gen9randomdoublesbattle", "gen9babyrandombattle"])
def test_other_formats_are_observed_without_sets(battle_format):
    known, unknown = (pokemon_spec(PokemonConfig(format=battle_format, set_knowledge=asked)) for asked in (True, False))
    assert known.fingerprint() == unknown.fingerprint()


def moves_of(seat: Seat) -> dict[float, set[float]]:
    """What each Pokemon of a seat's first request has, by the row of its species."""
    request = next(record.request for record in seat.records if record.request)
    team = [(to_id_str(mon["details"].split(",")[0]), mon["moves"]) for mon in request["side"]["pokemon"]]
    return {vocabulary().species[name]: set(map(move_row, moves)) for name, moves in team}


def test_the_truth_is_as_likely_as_was_said():
    """Over battles of both seats: as many moves are there as the chances add up to, and few go unsaid."""
    hidden = said = expected = 0.0
    for vectors in (read_vectors(f"gen{gen}randombattle") for gen in range(1, 10)):
        rows = vectors.observations(*SETS).astype(np.float64)
        teams = {(seat.battle, seat.seat): moves_of(seat) for seat in vectors.seats}
        for seat in vectors.seats:
            decisions = sum(len(record.decisions) for record in seat.records)
            for row in rows[seat.first : seat.first + decisions]:
                for i in range(layout.TEAM_SIZE):
                    own = teams[seat.battle, 1 - seat.seat].get(row[SLICES[f"foe.{i}.species"]][0])
                    if own is None or (
                        row[SLICES[f"foe.{i}.active"]][0] and row[SLICES["global.foe_active.transformed"]][0]
                    ):
                        continue
                    true = own - set(row[SLICES[f"foe.{i}.moves"]])
                    hidden += len(true)
                    said += len(true & set(row[SLICES[f"set.{i}.moves"]]))
                    expected += row[SLICES[f"set.{i}.moves_chance"]].sum()
    assert hidden > 5000
    assert said / hidden > 0.9
    assert expected / said == pytest.approx(1.0, abs=0.05)
