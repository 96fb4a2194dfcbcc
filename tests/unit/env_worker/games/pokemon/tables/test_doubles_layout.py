"""The layout of a slot of doubles covers the observation, and every feature fires in the golden vectors."""

from __future__ import annotations

import numpy as np
import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.env_worker.games.pokemon.tables import doubles_layout as layout
from tests.support.layouts import check_cover, check_ranges
from tests.support.pokemon.vectors import DOUBLES, read_vectors

FIRST_MOVE = 7  # of the actions
NEVER_LEGAL = [f"mask of gimmick 3, target {target}" for target in (0, 1)]  # max moves do not aim at one's own side


@pytest.fixture(scope="module")
def observations() -> np.ndarray:
    """float16 [N, D] of the golden vectors."""
    return np.concatenate([read_vectors(name).observations(0, False) for name in DOUBLES])


def test_the_spec_is_that_of_doubles():
    spec = pokemon_spec(PokemonConfig(format="gen9randomdoublesbattle"))
    assert (spec.num_actions, spec.observation_size) == (107, layout.OBSERVATION_SIZE)
    assert spec.layout == layout.slices()
    assert pokemon_spec(PokemonConfig(format="gen9vgc2025regi")).num_actions == 107


def test_damage_of_the_whole_team_is_refused():
    with pytest.raises(ConfigError, match=r"damage_attackers: 6 asks for blocks that doubles .* leave it out"):
        pokemon_spec(PokemonConfig(format="gen9randomdoublesbattle", damage_attackers=6))


def test_slices_cover_the_observation():
    check_cover(layout.slices(), layout.OBSERVATION_SIZE)


def test_every_value_lies_in_its_range(observations):
    check_ranges(observations, layout.slices())


def test_every_feature_fires(observations):
    silent = [name for name, columns in features() if observations[:, columns].min() == observations[:, columns].max()]
    assert silent == NEVER_LEGAL


def features() -> list[tuple[str, list[int]]]:
    """Number by number; blocks of a kind count as one, so do actions of one gimmick with one target."""
    columns: dict[str, list[int]] = {}
    for part in layout.slices():
        group, _, field = part.name.partition(".")
        if group in ("own", "foe", "move", "partner_move"):
            field = group + field[1:]
        for offset in range(part.size):
            name = f"{field or group}[{offset}]"
            if group == "mask" and offset >= FIRST_MOVE:
                name = f"mask of gimmick {(offset - FIRST_MOVE) // 20}, target {(offset - FIRST_MOVE) % 5}"
            columns.setdefault(name, []).append(part.start + offset)
    columns["foe.present[0]"] += columns.pop("own.present[0]")
    return list(columns.items())
