"""Which type multiplier a weapon has on a target, as a power of two, and whether it does anything at all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from env_worker.games.pokemon.damage import columns as col
from env_worker.games.pokemon.damage.facts import FACTS
from env_worker.games.pokemon.damage.moves import FLYING_PRESS, FREEZE_DRY, STRUGGLES, THOUSAND_ARROWS
from env_worker.games.pokemon.damage.movetypes import FIGHTING, FIRE, WATER
from env_worker.games.pokemon.damage.state import FLYING, GHOST, GROUND, NORMAL, STELLAR
from env_worker.games.pokemon.damage.tables import BARRED, TYPES, Tables

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
_ON_GROUND = FACTS["target_grounded"]


class Effect(NamedTuple):
    """`eff`: int64 [N], log2 of the type multiplier; `immune`: bool [N], True = no damage (eff has no meaning then)."""

    eff: Ints
    immune: Flags


def effectiveness(tables: Tables, w: Ints, t: Ints) -> Effect:
    """w: columns of N weapons, t: of their targets."""
    kind, odd = w[col.W_TYPE], t[col.T_ODD]
    strange = (odd & ~(col.TERASTALLIZED | col.UNAWARE)) | w[col.W_ODDITY] | w[col.W_SCRAPPY] | (kind == STELLAR)
    if strange.any():
        return _strange(tables, w, t)
    row = kind * TYPES
    eff = tables.multipliers.take(row + t[col.T_TYPE1]) + tables.multipliers.take(row + t[col.T_TYPE2])
    immune = (eff <= BARRED // 2) | ((kind == GROUND) & ((t[col.T_FACTS] & _ON_GROUND) == 0))
    return Effect(np.maximum(eff, -8), immune)


def _strange(tables: Tables, w: Ints, t: Ints) -> Effect:
    """The same, with everything that changes the type chart."""
    kind, first, second, odd, oddity = w[col.W_TYPE], t[col.T_TYPE1], t[col.T_TYPE2], t[col.T_ODD], w[col.W_ODDITY]
    one, two = tables.exponents[kind, first], tables.exponents[kind, second]
    barred_one, barred_two = tables.immune[kind, first], tables.immune[kind, second]
    scrappy = (w[col.W_SCRAPPY] != 0) & ((kind == NORMAL) | (kind == FIGHTING))
    barred_one, barred_two = barred_one & ~(scrappy & (first == GHOST)), barred_two & ~(scrappy & (second == GHOST))
    ground = kind == GROUND
    afloat = (t[col.T_FACTS] & _ON_GROUND) == 0
    immune = np.where(ground, afloat & (oddity != THOUSAND_ARROWS), barred_one | barred_two)
    if (odd | oddity).any():
        one, two = _odd_types(tables, kind, first, one, oddity, odd), _odd_types(tables, kind, second, two, oddity, odd)
        one = one + ((odd & col.TAR_SHOT) // col.TAR_SHOT) * (kind == FIRE)
    eff = one + two
    if odd.any():
        stellar = (kind == STELLAR) & ((odd & col.TERASTALLIZED) != 0)
        eff = np.where(stellar, 1, eff)
        eff = np.where(((odd & col.TERA_SHELL) != 0) & (eff >= 0), -1, eff)
        immune = immune | (((odd & col.WONDER_GUARD) != 0) & (eff <= 0) & ((w[col.W_BITS] & STRUGGLES) == 0))
    if (oddity == THOUSAND_ARROWS).any():
        eff = np.where((oddity == THOUSAND_ARROWS) & afloat & ((first == FLYING) | (second == FLYING)), 0, eff)
    return Effect(eff, immune)


def _odd_types(tables: Tables, kind: Ints, against: Ints, value: Ints, oddity: Ints, odd: Ints) -> Ints:
    """The exponent against one of the target's types, for moves and winds that change it."""
    value = np.where((oddity == FREEZE_DRY) & (against == WATER), 1, value)
    value = np.where(oddity == FLYING_PRESS, value + tables.exponents[FLYING, against], value)
    return np.where(((odd & col.STRONG_WINDS) != 0) & (against == FLYING) & (value > 0), 0, value)
