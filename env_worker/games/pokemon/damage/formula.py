"""The damage formula over many pairs at once: integers throughout, as each generation's games count.

A pair is one weapon (see `weapons`) against one target (`targets`); N pairs give every roll of each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from env_worker.games.pokemon.damage import columns as col
from env_worker.games.pokemon.damage.columns import ONE
from env_worker.games.pokemon.damage.facts import FACTS
from env_worker.games.pokemon.damage.moves import (
    CRITS,
    EXPLODES,
    FLYING_PRESS,
    FOE_ATTACK,
    FREEZE_DRY,
    IGNORES_STAGES,
    NOT_FIXED,
    STRUGGLES,
    THOUSAND_ARROWS,
)
from env_worker.games.pokemon.damage.powers import LAST_PAIRED, fixed_damage, paired_power
from env_worker.games.pokemon.damage.rules import ATTACK, EARLY, FINAL, IMMUNE, POWER
from env_worker.games.pokemon.damage.state import FLYING, GHOST, GROUND, NORMAL
from env_worker.games.pokemon.damage.tables import Tables

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
ROLLS = np.arange(85, 101, dtype=np.int64)  # hundredths
OLD_ROLLS = np.arange(217, 256, dtype=np.int64)  # 255ths, gens 1 and 2
FIGHTING, FIRE, WATER = 6, 7, 18
_FASTER, _SLOWER, _TECHNICAL = FACTS["faster"], FACTS["slower"], FACTS["technical"]
TECHNICAL_POWER = 60
_SUPER, _RESISTED, _ON_GROUND = FACTS["super_effective"], FACTS["resisted"], FACTS["target_grounded"]


class Effect(NamedTuple):
    """`eff`: log2 of the type multiplier; `immune`: no damage at all."""

    eff: Ints
    immune: Flags


def rolls(tables: Tables, weapons: Ints, targets: Ints, waiting: int = col.WAITING, guards: int = col.GUARDS) -> Ints:
    """Damage of one hit in points, without critical hits.

    weapons: int64 [N, WEAPON_WIDTH]; targets: int64 [N, TARGET_WIDTH]; waiting, guards: how many of their rules are
    in use at most. Returns int64 [N, 16] (gens 1-2: [N, 39]), 0 where the target is immune.
    """
    w, t = weapons.T, targets.T
    effect = effectiveness(tables, w, t)
    facts = w[col.W_FACTS] | t[col.T_FACTS] | _sign(effect.eff, _SUPER, _RESISTED)
    facts = facts | _sign(w[col.W_SPEED] - t[col.T_SPEED], _FASTER, _SLOWER)
    power = w[col.W_POWER].copy()
    kind = w[col.W_POWER_KIND]
    if kind.any():
        for row in np.flatnonzero((kind > 0) & (kind <= LAST_PAIRED)):
            power[row] = paired_power(tables.gen, weapons[row], targets[row])
    facts = facts | np.where(power <= TECHNICAL_POWER, _TECHNICAL, 0)
    mods = {stage: w[column] for stage, column in _STATIC}
    immune = effect.immune | (w[col.W_WEATHER] == 0)
    for first, rows, count in ((col.W_RULES, w, waiting), (col.T_RULES, t, guards)):
        for start in range(first, first + 3 * count, 3):
            immune = _chain(mods, facts, rows[start : start + 3], immune)
    power, attack, defence = _terms(tables.gen, w, t, power, mods)
    damage = (w[col.W_LEVEL] * power * attack // defence) // 50
    damage = _FORMULAS[tables.gen](tables.gen, w, damage, effect.eff, mods)
    fixed = np.flatnonzero(w[col.W_FIXED] != NOT_FIXED)
    for row in fixed:
        damage[row] = fixed_damage(weapons[row], targets[row], damage.shape[1])
    if tables.gen == 1:
        immune = immune & (w[col.W_FIXED] == NOT_FIXED)
    damage[immune] = 0
    return damage


_STATIC = ((POWER, col.W_POWER_MOD), (ATTACK, col.W_ATTACK_MOD), (FINAL, col.W_FINAL_MOD), (EARLY, col.W_EARLY_MOD))


def _sign(value: Ints, above: int, below: int) -> Ints:
    return np.where(value > 0, above, np.where(value < 0, below, 0))


def _chain(mods: dict[int, Ints], facts: Ints, rule: Ints, immune: Flags) -> Flags:
    """Apply one rule of every pair where its facts hold."""
    stage, mask, mod = rule
    fires = ((facts & mask) == mask) & (mod != ONE)
    if not fires.any():
        return immune
    for place in set(stage[fires].tolist()):
        here = fires & (stage == place)
        if place == IMMUNE:
            immune = immune | here
        else:
            mods[place] = np.where(here, (mods[place] * mod + 2048) >> 12, mods[place])
    return immune


def effectiveness(tables: Tables, w: Ints, t: Ints) -> Effect:
    """Of columns of weapons and targets."""
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
        stellar = (kind == 20) & ((odd & col.TERASTALLIZED) != 0)
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


def _terms(gen: int, w: Ints, t: Ints, power: Ints, mods: dict[int, Ints]) -> tuple[Ints, Ints, Ints]:
    """Power, attack and defence of every pair; `power` before its modifiers."""
    bits, special = w[col.W_BITS], w[col.W_SPECIAL] != 0
    power = np.maximum((power * mods[POWER] + 2047) >> 12, 1)
    power = np.where((w[col.W_TERA] != 0) & (power < 60), 60, power)
    foul = (bits & FOE_ATTACK) != 0
    unaware = t[col.T_UNAWARE] != 0
    attack = np.where(unaware, w[col.W_ATTACK_PLAIN], w[col.W_ATTACK])
    attack = np.where(foul, np.where(unaware, t[col.T_ATTACK_PLAIN], t[col.T_ATTACK]), attack)
    attack = (attack * mods[ATTACK] + 2047) >> 12
    staged = np.where(special, t[col.T_SPECIAL], t[col.T_DEFENCE])
    plain = np.where(special, t[col.T_SPECIAL_PLAIN], t[col.T_DEFENCE_PLAIN])
    defence = np.where((bits & CRITS) != 0, np.minimum(staged, plain), staged)
    defence = np.where(((bits & IGNORES_STAGES) != 0) | (w[col.W_UNAWARE] != 0), plain, defence)
    mod = np.where(special, t[col.T_SPECIAL_MOD], t[col.T_DEFENCE_MOD])
    mod = (mod * w[col.W_DEFENCE_MOD] + 2048) >> 12
    defence = np.maximum((defence * mod + 2047) >> 12, 1)
    if gen <= 2:
        large = (attack >= 256) | (defence >= 256)
        attack = np.where(large, np.maximum(attack // 4 & 255, 1), attack)
        defence = np.where(large, np.maximum(defence // 4 & 255, 1), defence)
    if gen <= 4:
        defence = np.where((bits & EXPLODES) != 0, np.maximum(defence // 2, 1), defence)
    return power, attack, defence


def _times(value: Ints, mod: Ints | int) -> Ints:
    return (value * mod + 2047) >> 12


def _typed(value: Ints, eff: Ints) -> Ints:
    """Doublings, or halvings rounded down; value [N, R], eff [N]."""
    return (value << np.maximum(eff, 0)[:, None]) >> np.maximum(-eff, 0)[:, None]


def _gen5_on(gen: int, w: Ints, damage: Ints, eff: Ints, mods: dict[int, Ints]) -> Ints:
    damage = _times(damage + 2, w[col.W_WEATHER])
    crits = (w[col.W_BITS] & CRITS) != 0
    if crits.any():
        damage = np.where(crits, damage * 3 // 2 if gen >= 6 else damage * 2, damage)
    spread = damage[:, None] * ROLLS // 100
    spread = _typed(_times(spread, w[col.W_STAB][:, None]), eff)
    if w[col.W_BURN].any():
        spread = np.where((w[col.W_BURN] != 0)[:, None], _times(spread, 2048), spread)
    return np.maximum(_times(spread, mods[FINAL][:, None]), 1)


def _gen3_4(gen: int, w: Ints, damage: Ints, eff: Ints, mods: dict[int, Ints]) -> Ints:
    damage = np.where(w[col.W_BURN] != 0, _times(damage, 2048), damage)
    damage = _times(_times(damage, mods[EARLY]), w[col.W_WEATHER])
    if gen == 3:
        damage = np.maximum(damage, 1 - w[col.W_SPECIAL])
    damage = damage + 2
    damage = np.where(w[col.W_MIDDLE_MOD] > ONE, damage * 13 // 10, damage)
    spread = damage[:, None] * (ROLLS if gen == 4 else 100) // 100
    spread = _typed(_times(spread, w[col.W_STAB][:, None]), eff)
    spread = _times(spread, mods[FINAL][:, None])
    return np.maximum(spread if gen == 4 else spread * ROLLS // 100, 1)


def _gen1_2(gen: int, w: Ints, damage: Ints, eff: Ints, mods: dict[int, Ints]) -> Ints:
    damage = np.where(mods[FINAL] > ONE, damage * 11 // 10, damage)
    damage = np.clip(damage, 1 if gen == 2 else 0, 997) + 2
    damage = damage * w[col.W_WEATHER] // ONE
    damage = damage + np.where(w[col.W_STAB] > ONE, damage // 2, 0)
    damage = (damage << np.maximum(eff, 0)) >> np.maximum(-eff, 0)
    spread = damage[:, None] * OLD_ROLLS // 255
    return np.maximum(np.where((damage > 1)[:, None], spread, damage[:, None]), 1)


_FORMULAS = (_gen1_2, _gen1_2, _gen1_2, _gen3_4, _gen3_4, *[_gen5_on] * 5)
