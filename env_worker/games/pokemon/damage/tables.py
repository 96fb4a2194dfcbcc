"""What the damage formula knows of a generation before any battle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from poke_env.data import GenData

from simul.env_worker.games.pokemon.damage.facts import PAIR_FACTS
from simul.env_worker.games.pokemon.damage.rules import Rule, rules
from simul.env_worker.games.pokemon.encoding.movedex import type_chart

_EXPONENTS = {0.0: 0, 0.5: -1, 1.0: 0, 2.0: 1}


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """One generation's.

    Attributes:
        exponents: [21][21], attacking by defending type: log2 of the multiplier, 0 where immune; 0 is no type.
        immune: [21][21], True = no damage.
        asked: facts of moves that some target's rule asks for.
        weights: tenths of a kilogram by species id; unfinished: species that still evolve.
    """

    gen: int
    rules: dict[str, dict[str, tuple[Rule, ...]]]
    exponents: tuple[tuple[int, ...], ...]
    immune: tuple[tuple[bool, ...], ...]
    asked: int
    weights: dict[str, int]
    unfinished: frozenset[str]


@cache
def tables(gen: int) -> Tables:
    """The tables of one generation; the same object every time."""
    data = GenData.from_gen(gen)
    chart = type_chart(gen)
    known = rules(gen)
    return Tables(
        gen=gen,
        rules=known,
        exponents=tuple([tuple([_EXPONENTS[value] for value in row]) for row in chart]),
        immune=tuple([tuple([value == 0.0 for value in row]) for row in chart]),
        asked=_asked(known),
        weights={name: round(10 * entry.get("weightkg", 0)) for name, entry in data.pokedex.items()},
        unfinished=frozenset(name for name, entry in data.pokedex.items() if entry.get("evos")),
    )


def _asked(known: dict[str, dict[str, tuple[Rule, ...]]]) -> int:
    mask = 0
    for who in ("target_ability", "target_item", "target_effect", "screen"):
        for found in known[who].values():
            for rule in found:
                mask |= rule.mask
    return mask & ~PAIR_FACTS
