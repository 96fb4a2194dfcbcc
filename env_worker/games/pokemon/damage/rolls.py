"""From what a hit is before its roll to every roll of it, and to their moments."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from simul.env_worker.games.pokemon.damage.state import modify
from simul.env_worker.games.pokemon.damage.terms import ONE

ROLLS = range(85, 101)  # hundredths
OLD_ROLLS = range(217, 256)  # 255ths, gens 1 and 2
_REMEMBERED = 16384  # hits, over all battles of the process: damage before the roll is a small number
ROLLED, EXACT, PSYWAVE = range(3)


class Hit(NamedTuple):
    """A blow that a roll and what comes after it make damage of.

    Attributes:
        effect: log2 of the type multiplier.
        final: modifier of the last stage.
        how: ROLLED, or EXACT: `damage` is what it is, or PSYWAVE: `damage` is the user's level.
    """

    gen: int
    damage: int
    stab: int = ONE
    effect: int = 0
    burned: bool = False
    final: int = ONE
    how: int = ROLLED


def rolls(hit: Hit) -> list[int]:
    """Damage in points of every roll: 16 of them, 39 in gens 1 and 2."""
    count = number_of_rolls(hit.gen)
    if hit.how == PSYWAVE:  # half to one and a half levels, evenly
        return [hit.damage * (count - 1 + 2 * step) // (2 * (count - 1)) for step in range(count)]
    if hit.how == EXACT:
        return [hit.damage] * count
    return _ROLLED[hit.gen](hit)


def number_of_rolls(gen: int) -> int:
    return len(OLD_ROLLS if gen <= 2 else ROLLS)


@lru_cache(maxsize=_REMEMBERED)
def moments(hit: Hit) -> tuple[int, int]:
    """Sum of the rolls and of their squares."""
    found = rolls(hit)
    return sum(found), sum([roll * roll for roll in found])


def _typed(value: int, effect: int) -> int:
    """Doublings, or halvings rounded down."""
    return value << effect if effect >= 0 else value >> -effect


def _gen5_on(hit: Hit) -> list[int]:
    _, damage, stab, effect, burned, final, *_ = hit
    spread = [_typed(modify(damage * roll // 100, stab), effect) for roll in ROLLS]
    if burned:
        spread = [modify(roll, 2048) for roll in spread]
    return [max(modify(roll, final), 1) for roll in spread]


def _gen4(hit: Hit) -> list[int]:
    _, damage, stab, effect, _, final, *_ = hit
    return [max(modify(_typed(modify(damage * roll // 100, stab), effect), final), 1) for roll in ROLLS]


def _gen3(hit: Hit) -> list[int]:
    damage = modify(_typed(modify(hit.damage, hit.stab), hit.effect), hit.final)
    return [max(damage * roll // 100, 1) for roll in ROLLS]


def _gen1_2(hit: Hit) -> list[int]:
    damage = _typed(hit.damage, hit.effect)
    return [max(damage * roll // 255 if damage > 1 else damage, 1) for roll in OLD_ROLLS]


_ROLLED = (_gen1_2, _gen1_2, _gen1_2, _gen3, _gen4, *[_gen5_on] * 5)
