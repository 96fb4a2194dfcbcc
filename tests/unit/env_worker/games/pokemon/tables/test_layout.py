"""The layout covers the observation, and every feature fires in the golden vectors."""

import numpy as np
import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.protocol.specs import Slice
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.env_worker.games.pokemon.tables import layout, layout_files
from simul.env_worker.games.pokemon.tables.layout import PLAIN, Extras
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary
from tests.support.layouts import check_cover, check_ranges
from tests.support.pokemon.vectors import SINGLES, read_vectors

FULL = Extras(sets=True)
FULL_SIZE = layout.observation_size(FULL)


@pytest.fixture(scope="module")
def observations() -> np.ndarray:
    """float16 [N, D] of the golden vectors; sets are 0 where they are not known."""
    rows = [read_vectors(name).observations(layout.ATTACKERS, "random" in name) for name in SINGLES]
    return np.concatenate([np.pad(some, ((0, 0), (0, FULL_SIZE - some.shape[1]))) for some in rows])


@pytest.mark.parametrize("extras", [Extras(0), PLAIN, Extras(6), Extras(0, sets=True), Extras(6, sets=True)])
def test_slices_cover_the_observation_without_gap_or_overlap(extras):
    check_cover(layout.slices(extras), layout.observation_size(extras))


def test_the_files_made_from_the_layout_are_up_to_date():
    for path, text in layout_files.files().items():
        assert path.read_text(encoding="utf-8") == text, f"run `python -m {layout_files.__name__}`"


def test_blocks_of_a_kind_hold_the_same_things_at_the_same_offsets():
    def block(prefix: str) -> list[tuple[str, int, int, str]]:
        parts = [part for part in layout.slices() if part.name.startswith(prefix + ".")]
        return [(p.name.removeprefix(prefix), p.start - parts[0].start, p.size, p.table) for p in parts]

    for i in range(layout.TEAM_SIZE):
        assert block(f"own.{i}") == block(f"foe.{i}") == block("own.0")
    for k in range(layout.MOVE_SLOTS):
        assert block(f"move.{k}") == block("move.0")


def test_ids_are_exact_in_float16():
    assert all(size <= 2048 for size in vocabulary().sizes.values())


def test_every_value_lies_in_its_range(observations):
    check_ranges(observations, layout.slices(FULL))


def test_every_feature_fires(observations):
    silent = []
    for name, columns in _features():
        values = observations[:, columns]
        if values.min() == values.max():
            silent.append(name)
    assert silent == []


def varying(observations: np.ndarray, parts: tuple[Slice, ...]) -> dict[str, int]:
    """How many columns of numbers (no ids) take more than one value, in each block (global, own.0, ...)."""
    lively = observations.min(axis=0) != observations.max(axis=0)
    counts: dict[str, int] = {}
    for part in parts:
        if part.kind == "number":
            group, _, rest = part.name.partition(".")
            block = group if group == "global" else f"{group}.{rest.partition('.')[0]}"
            counts[block] = counts.get(block, 0) + int(lively[part.start : part.start + part.size].sum())
    return counts


def test_at_least_1100_columns_vary(observations):
    counts = varying(observations, layout.slices())
    assert sum(counts.values()) >= 1100, counts
    for kind in ("own.", "foe.", "move.", "damage."):
        blocks = [count for block, count in counts.items() if block.startswith(kind)]
        assert min(blocks) > 0.8 * max(blocks), counts


def test_the_damage_of_a_whole_team_varies():
    rows = [read_vectors(name).observations(layout.TEAM_SIZE, False) for name in SINGLES if name.startswith("gen9")]
    counts = varying(np.concatenate(rows), layout.slices(Extras(6)))
    assert sum(counts.values()) >= 1100
    assert sum(count for block, count in counts.items() if block.startswith("damage.")) > 0.95 * 576, counts


def _features() -> list[tuple[str, list[int]]]:
    """Number by number; blocks of a kind count as one, because their features are the same."""
    columns: dict[str, list[int]] = {}
    for part in layout.slices(FULL):
        group, _, field = part.name.partition(".")
        if group in ("own", "foe", "move", "set"):
            field = group + field[1:]
        for offset in range(part.size):
            columns.setdefault(f"{field or group}[{offset}]", []).append(part.start + offset)
    # An own block always describes a Pokemon; the same number says it of the foe's blocks.
    columns["foe.present[0]"] += columns.pop("own.present[0]")
    return list(columns.items())


def test_the_spec_is_stable_and_names_the_format():
    spec = pokemon_spec(PokemonConfig())
    assert spec.name == "pokemon/gen9randombattle"
    assert spec.num_actions == 26
    assert spec.fingerprint() == pokemon_spec(PokemonConfig(max_turns=7)).fingerprint()
    assert spec.fingerprint() != pokemon_spec(PokemonConfig(format="gen8randombattle")).fingerprint()
    assert spec.fingerprint() != pokemon_spec(PokemonConfig(damage_attackers=6)).fingerprint()
    assert spec.fingerprint() != pokemon_spec(PokemonConfig(set_knowledge=False)).fingerprint()
