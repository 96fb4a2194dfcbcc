"""Specs the networks are tested on."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from simul.common.protocol.specs import GameSpec, Slice
from simul.env_worker.games.ofc.observation import ofc_spec
from simul.env_worker.games.ofc.rules import Rules

TABLES = {"species": 40, "item": 12, "ability": 9, "move": 30}


def _empty_layout(tables: dict[str, int]) -> tuple[list[Slice], Callable[..., None]]:
    """A layout, and what adds a slice to it: name, size, table of an id."""
    layout: list[Slice] = []

    def add(name: str, size: int, table: str = "") -> None:
        start = layout[-1].start + layout[-1].size if layout else 0
        kind = "id" if table else "number"
        layout.append(Slice(name, start, size, kind, vocabulary=tables.get(table, 0), table=table))

    return layout, add


def pokemon_spec(
    pokemon_numbers: int = 5, move_numbers: int = 4, tables: dict[str, int] = TABLES, sets: bool = False
) -> GameSpec:
    """A layout as the Pokémon game declares it, of any size."""
    layout, add = _empty_layout(tables)
    add("global.field", 7)
    add("global.last_move", 2, "move")
    for side in ("own", "foe"):
        for i in range(6):
            add(f"{side}.{i}.species", 1, "species")
            add(f"{side}.{i}.item", 1, "item")
            add(f"{side}.{i}.ability", 1, "ability")
            add(f"{side}.{i}.moves", 4, "move")
            add(f"{side}.{i}.active", 1)
            add(f"{side}.{i}.numbers", pokemon_numbers)
    for i in range(4):
        add(f"move.{i}.id", 1, "move")
        add(f"move.{i}.numbers", move_numbers)
    add("mask", 26)
    for i in range(6 if sets else 0):
        add(f"set.{i}.moves", 6, "move")
        add(f"set.{i}.moves_chance", 6)
    size = layout[-1].start + layout[-1].size
    return GameSpec("pokemon/test", size, 26, "float16", seats=2, layout=tuple(layout))


def doubles_spec(tables: dict[str, int] = TABLES) -> GameSpec:
    """A layout as the game declares it for doubles, with one gimmick."""
    layout, add = _empty_layout(tables)
    add("global.right", 1)
    add("global.first.move", 1, "move")
    for side in ("own", "foe"):
        for i in range(6):
            add(f"{side}.{i}.species", 1, "species")
            add(f"{side}.{i}.moves", 4, "move")
            add(f"{side}.{i}.slot", 2)
            add(f"{side}.{i}.left.deals", 1)
            add(f"{side}.{i}.right.deals", 1)
    for whose in ("move", "partner_move"):
        for i in range(4):
            add(f"{whose}.{i}.id", 1, "move")
            add(f"{whose}.{i}.numbers", 3)
            add(f"{whose}.{i}.left.damage", 2)
            add(f"{whose}.{i}.right.damage", 2)
    add("mask", 47)
    size = layout[-1].start + layout[-1].size
    return GameSpec("pokemon/doubles", size, 47, "float16", seats=2, layout=tuple(layout))


def observe(spec: GameSpec, *shape: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """A random observation [*shape, D] in the wire dtype and a mask [*shape, A] with at least one legal action."""
    rng = np.random.default_rng(seed)
    largest = 256 if spec.observation_dtype == "uint8" else 1
    observation = (largest * rng.random((*shape, spec.observation_size))).astype(spec.dtype())
    for part in spec.layout:
        if part.kind == "id":
            ids = rng.integers(0, part.vocabulary, (*shape, part.size))
            observation[..., part.start : part.start + part.size] = ids
    mask = rng.random((*shape, spec.num_actions)) < 0.5
    mask[..., 0] = True
    return torch.from_numpy(observation), torch.from_numpy(mask)


@pytest.fixture
def flat_spec() -> GameSpec:
    return GameSpec("flat", 4, 2)


@pytest.fixture
def image_spec() -> GameSpec:
    """7 x 6 pixels of 3 channels, and 2 numbers behind them."""
    return GameSpec("image", 128, 5, "uint8", observation_shape=(7, 6, 3), observation_axes="HWC")


@pytest.fixture
def board_spec() -> GameSpec:
    """5 x 4 cells of 2 planes, and 2 numbers behind them; the first and the last action have no cell."""
    cells = (-1, *np.random.default_rng(0).permutation(60)[:11].tolist(), -1)
    image = {"observation_shape": (2, 5, 4), "observation_axes": "CHW"}
    return GameSpec("board", 42, len(cells), **image, action_planes=3, action_cells=cells)


@pytest.fixture(name="ofc_spec")
def _ofc_spec() -> GameSpec:
    return ofc_spec(Rules())


@pytest.fixture
def entity_spec() -> GameSpec:
    return pokemon_spec()


@pytest.fixture
def entity_spec_with_sets() -> GameSpec:
    return pokemon_spec(sets=True)


@pytest.fixture(name="doubles_spec")
def _doubles_spec() -> GameSpec:
    return doubles_spec()


@pytest.fixture
def observed():
    return observe
