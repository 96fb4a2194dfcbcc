"""The damage formula over many pairs at once: integers throughout, as each generation's games count.

A pair is one weapon (see `weapons`) against one target (`targets`); N pairs give every roll of each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from env_worker.games.pokemon.damage import columns as col
from env_worker.games.pokemon.damage.columns import ONE
from env_worker.games.pokemon.damage.effectiveness import effectiveness
from env_worker.games.pokemon.damage.facts import FACTS
from env_worker.games.pokemon.damage.moves import (
    CRITS,
    EXPLODES,
    FOE_ATTACK,
    IGNORES_STAGES,
    NOT_FIXED,
)
from env_worker.games.pokemon.damage.powers import LAST_PAIRED, fixed_damage, paired_power
from env_worker.games.pokemon.damage.rules import ATTACK, EARLY, FINAL, IMMUNE, POWER
from env_worker.games.pokemon.damage.tables import Tables

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
ROLLS = np.arange(85, 101, dtype=np.int64)  # hundredths
OLD_ROLLS = np.arange(217, 256, dtype=np.int64)  # 255ths, gens 1 and 2
_FASTER, _SLOWER, _TECHNICAL = FACTS["faster"], FACTS["slower"], FACTS["technical"]
TECHNICAL_POWER = 60
_RARE = FOE_ATTACK | CRITS | IGNORES_STAGES
_SUPER, _RESISTED = FACTS["super_effective"], FACTS["resisted"]


def rolls(tables: Tables, weapons: Ints, targets: Ints, waiting: int = col.WAITING, guards: int = col.GUARDS) -> Ints:
    """Damage of one hit in points, without critical hits.

    weapons: int64 [N, WEAPON_WIDTH]; targets: int64 [N, TARGET_WIDTH]; waiting, guards: how many of their rules are
    in use at most. Returns int64 [N, 16] (gens 1-2: [N, 39]), 0 where the target is immune.
    """
    w, t = weapons.T, targets.T
    effect = effectiveness(tables, w, t)
    power = _power(tables.gen, weapons, targets)
    mods = {stage: w[column] for stage, column in _STATIC}
    immune = effect.immune | (w[col.W_WEATHER] == 0)
    if waiting or guards:
        facts = w[col.W_FACTS] | t[col.T_FACTS] | _sign(effect.eff, _SUPER, _RESISTED)
        facts |= _sign(w[col.W_SPEED] - t[col.T_SPEED], _FASTER, _SLOWER)
        facts |= np.where(power <= TECHNICAL_POWER, _TECHNICAL, 0)
        for first, rows, count in ((col.W_RULES, w, waiting), (col.T_RULES, t, guards)):
            for start in range(first, first + 3 * count, 3):
                immune = _chain(mods, facts, rows[start : start + 3], immune)
    power, attack, defence = _terms(tables.gen, w, t, power, mods)
    damage = (w[col.W_LEVEL] * power * attack // defence) // 50
    damage = _FORMULAS[tables.gen](tables.gen, w, damage, effect.eff, mods)
    for row in w[col.W_FIXED].nonzero()[0]:
        damage[row] = fixed_damage(weapons[row], targets[row], damage.shape[1])
    if tables.gen == 1:
        immune = immune & (w[col.W_FIXED] == NOT_FIXED)
    damage[immune] = 0
    return damage


_STATIC = ((POWER, col.W_POWER_MOD), (ATTACK, col.W_ATTACK_MOD), (FINAL, col.W_FINAL_MOD), (EARLY, col.W_EARLY_MOD))


def _power(gen: int, weapons: Ints, targets: Ints) -> Ints:
    """Power before its modifiers, [N]."""
    power, kind = weapons[:, col.W_POWER], weapons[:, col.W_POWER_KIND]
    if kind.any():
        power = power.copy()
        for row in ((kind > 0) & (kind <= LAST_PAIRED)).nonzero()[0]:
            power[row] = paired_power(gen, weapons[row], targets[row])
    return power


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


def _terms(gen: int, w: Ints, t: Ints, power: Ints, mods: dict[int, Ints]) -> tuple[Ints, Ints, Ints]:
    """Power, attack and defence of every pair; `power` before its modifiers."""
    bits, special = w[col.W_BITS], w[col.W_SPECIAL] != 0
    power = np.maximum((power * mods[POWER] + 2047) >> 12, 1)
    if w[col.W_TERA].any():
        power = np.where((w[col.W_TERA] != 0) & (power < 60), 60, power)
    attack, defence = w[col.W_ATTACK], np.where(special, t[col.T_SPECIAL], t[col.T_DEFENCE])
    if (bits & _RARE).any() or (t[col.T_ODD] & col.UNAWARE).any():
        attack, defence = _rare_terms(w, t, attack, defence)
    attack = (attack * mods[ATTACK] + 2047) >> 12
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


def _rare_terms(w: Ints, t: Ints, attack: Ints, defence: Ints) -> tuple[Ints, Ints]:
    """Attack and defence where not the user's and the target's stages alone decide."""
    bits, unaware = w[col.W_BITS], (t[col.T_ODD] & col.UNAWARE) != 0
    attack = np.where(unaware, w[col.W_ATTACK_PLAIN], attack)
    foul = np.where(unaware, t[col.T_ATTACK_PLAIN], t[col.T_ATTACK])
    attack = np.where((bits & FOE_ATTACK) != 0, foul, attack)
    plain = np.where(w[col.W_SPECIAL] != 0, t[col.T_SPECIAL_PLAIN], t[col.T_DEFENCE_PLAIN])
    defence = np.where((bits & CRITS) != 0, np.minimum(defence, plain), defence)
    return attack, np.where((bits & IGNORES_STAGES) != 0, plain, defence)


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
