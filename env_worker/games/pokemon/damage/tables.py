"""What the damage formula knows of a generation before any battle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from poke_env.data import GenData

from env_worker.games.pokemon.damage.rules import Rule, rules
from env_worker.games.pokemon.damage.state import GROUND
from env_worker.games.pokemon.movedex import type_chart

TYPES = 21  # ids of types, 0 for none
BARRED = -64
_EXPONENTS = {0.0: 0, 0.5: -1, 1.0: 0, 2.0: 1}


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """One generation's.

    Attributes:
        exponents: int64 [21, 21], attacking by defending type: log2 of the multiplier, 0 where immune; 0 is no type.
        multipliers: the same, flat, with BARRED where immune; ground hits whatever stands on it.
        immune: bool [21, 21].
        weights: tenths of a kilogram by species id; unfinished: species that still evolve.
    """

    gen: int
    rules: dict[str, dict[str, tuple[Rule, ...]]]
    exponents: NDArray[np.int64]
    multipliers: NDArray[np.int64]
    immune: NDArray[np.bool_]
    weights: dict[str, int]
    unfinished: frozenset[str]


@cache
def tables(gen: int) -> Tables:
    """The tables of one generation; the same object every time."""
    data = GenData.from_gen(gen)
    chart = type_chart(gen)
    exponents = np.array([[_EXPONENTS[value] for value in row] for row in chart], dtype=np.int64)
    immune = np.array([[value == 0.0 for value in row] for row in chart])
    return Tables(
        gen=gen,
        rules=rules(gen),
        exponents=exponents,
        multipliers=np.where(immune & (np.arange(TYPES) != GROUND)[:, None], BARRED, exponents).ravel(),
        immune=immune,
        weights={name: round(10 * entry.get("weightkg", 0)) for name, entry in data.pokedex.items()},
        unfinished=frozenset(name for name, entry in data.pokedex.items() if entry.get("evos")),
    )
