"""Names of actions, from the numbers of an observation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.env_worker.games.pokemon.tables.action_names import ActionNames
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary

SPECIES, MOVE = vocabulary().species, vocabulary().move
SINGLES = pokemon_spec(PokemonConfig())
DOUBLES = pokemon_spec(PokemonConfig(format="gen9randomdoublesbattle"))
TEAM = {"own.2.species": SPECIES["pikachu"], "move.1.id": MOVE["thunderbolt"]}
FIELD = {
    **TEAM, "own.0.species": SPECIES["snorlax"], "own.0.slot": (1, 0), "own.1.species": SPECIES["eevee"],
    "own.1.slot": (0, 1), "foe.3.species": SPECIES["gengar"], "foe.3.slot": (0, 1),
}  # fmt: skip
RIGHT = {**FIELD, "global.right": 1, "global.first.made": 1}
PASS, SWITCH, THUNDERBOLT, TERA = 0, 3, 12, 92  # of doubles: to own.2; move.1 at target -2, plain and terastallized
ITSELF, PARTNER, FOE_A, FOE_B = 1, 0, 3, 4  # targets of the left slot, from -2 on


def row(spec: Any, numbers: dict[str, Any]) -> np.ndarray:
    observation = np.zeros(spec.observation_size, np.float16)
    for part in spec.layout:
        if part.name in numbers:
            observation[part.start : part.start + part.size] = numbers[part.name]
    return observation


@pytest.mark.parametrize(
    ("action", "numbers", "name"),
    [
        (2, TEAM, "switch to pikachu"),
        (2, {**TEAM, "global.preview": 1}, "pick pikachu"),
        (2, {**TEAM, "global.reviving": 1}, "revive pikachu"),
        (5, TEAM, "switch to 6"),
        (7, TEAM, "thunderbolt"),
        (23, TEAM, "thunderbolt + tera"),
        (6, TEAM, "move 1"),
    ],
)
def test_singles(action: int, numbers: dict[str, Any], name: str) -> None:
    assert ActionNames(SINGLES, doubles=False).name(action, row(SINGLES, numbers)) == name


@pytest.mark.parametrize(
    ("action", "numbers", "name"),
    [
        (SWITCH, FIELD, "slot a: switch to pikachu"),
        (SWITCH, {**FIELD, "global.preview": 1}, "slot a: pick pikachu"),
        (THUNDERBOLT + FOE_B, FIELD, "slot a: thunderbolt at foe b gengar"),
        (THUNDERBOLT + FOE_A, FIELD, "slot a: thunderbolt at foe a"),  # it has fainted
        (THUNDERBOLT + PARTNER, FIELD, "slot a: thunderbolt at partner eevee"),
        (THUNDERBOLT + ITSELF, FIELD, "slot a: thunderbolt at itself"),
        (TERA + 2, FIELD, "slot a: thunderbolt + tera"),
        (SWITCH, RIGHT, "slot a: pass; slot b: switch to pikachu"),
        (PASS, {**RIGHT, "global.first.switch": (0, 0, 1, 0, 0, 0)}, "slot a: switch to pikachu; slot b: pass"),
        (
            THUNDERBOLT + ITSELF,  # target -1 is the left slot, the partner of the right one
            {**RIGHT, "global.first.move": MOVE["fakeout"], "global.first.target": (0, 0, 0, 0, 1),
             "global.first.gimmick": (0, 0, 0, 1)},
            "slot a: fakeout + tera at foe b gengar; slot b: thunderbolt at partner snorlax",
        ),
    ],
)  # fmt: skip
def test_doubles(action: int, numbers: dict[str, Any], name: str) -> None:
    assert ActionNames(DOUBLES, doubles=True).name(action, row(DOUBLES, numbers)) == name


def test_actions_of_a_decision_that_is_not_known_have_slots_or_numbers() -> None:
    assert ActionNames(SINGLES, doubles=False).name(2, None) == "switch to 3"
    assert ActionNames(DOUBLES, doubles=True).name(92, None) == "92"
