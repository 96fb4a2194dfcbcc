"""The damage formula of one weapon on one target: integers throughout, as each generation's games count.

Plain Python: a decision meets a handful of new pairs, too few for arrays to pay.
"""

from __future__ import annotations

from simul.env_worker.games.pokemon.damage.effectiveness import effectiveness
from simul.env_worker.games.pokemon.damage.facts import FACTS
from simul.env_worker.games.pokemon.damage.moves import CRITS, EXPLODES, FOE_ATTACK, IGNORES_STAGES, NOT_FIXED, PLAIN
from simul.env_worker.games.pokemon.damage.powers import fixed_hit, paired_power
from simul.env_worker.games.pokemon.damage.rolls import Hit
from simul.env_worker.games.pokemon.damage.rules import (
    ATTACK,
    EARLY,
    FINAL,
    FOE_DEFENCE,
    FOE_SPECIAL_DEFENCE,
    IMMUNE,
    MIDDLE,
    POWER,
)
from simul.env_worker.games.pokemon.damage.state import chain, modify
from simul.env_worker.games.pokemon.damage.tables import Tables
from simul.env_worker.games.pokemon.damage.terms import ONE, UNAWARE, Target, Weapon

Mods = tuple[int, ...]  # by stage
TECHNICAL_POWER = 60
_SUPER, _RESISTED = FACTS["super_effective"], FACTS["resisted"]
_FASTER, _SLOWER, _TECHNICAL = FACTS["faster"], FACTS["slower"], FACTS["technical"]
_RARE = FOE_ATTACK | CRITS | IGNORES_STAGES


def meet(tables: Tables, weapon: Weapon, target: Target) -> Hit | None:
    """One blow, without critical hits, before its roll; None where it does nothing."""
    gen, fixed = tables.gen, weapon.fixed
    effect = effectiveness(tables, weapon, target)
    power = weapon.power if weapon.power_kind == PLAIN else paired_power(gen, weapon, target)
    mods: Mods | None = weapon.mods
    if weapon.waiting or target.guards:
        mods = _settle(weapon, target, effect or 0, power)
    if effect is None or mods is None or weapon.weather == 0:
        return fixed_hit(gen, weapon, target) if gen == 1 and fixed != NOT_FIXED else None
    if fixed != NOT_FIXED:
        return fixed_hit(gen, weapon, target)
    power = max(modify(power, mods[POWER]), 1)
    if weapon.lifted and power < 60:
        power = 60
    attack, defence = _attack_and_defence(gen, weapon, target, mods)
    damage = weapon.level_term * power * attack // defence // 50
    return _FORMULAS[gen](gen, weapon, damage, effect, mods)


def _settle(weapon: Weapon, target: Target, effect: int, power: int) -> Mods | None:
    """The weapon's modifiers with those that both decide; None = immune."""
    facts = weapon.facts | target.facts
    if effect:
        facts |= _SUPER if effect > 0 else _RESISTED
    if weapon.speed != target.speed:
        facts |= _FASTER if weapon.speed > target.speed else _SLOWER
    if power <= TECHNICAL_POWER:
        facts |= _TECHNICAL
    mods = list(weapon.mods)
    for stage, mask, mod in weapon.waiting + target.guards:
        if facts & mask == mask:
            if stage == IMMUNE:
                return None
            mods[stage] = chain(mods[stage], mod)
    return tuple(mods)


def _attack_and_defence(gen: int, weapon: Weapon, target: Target, mods: Mods) -> tuple[int, int]:
    """Both with their modifiers."""
    bits, side = weapon.bits, weapon.special
    attack, defence = weapon.attack, target.defences[side]
    if bits & _RARE or target.odd & UNAWARE:
        attack, defence = _rare_terms(weapon, target)
    attack = modify(attack, mods[ATTACK])
    mod = chain(target.defence_mods[side], mods[FOE_SPECIAL_DEFENCE if side else FOE_DEFENCE])
    defence = max(modify(defence, mod), 1)
    if gen <= 2 and (attack >= 256 or defence >= 256):
        attack, defence = max(attack // 4 & 255, 1), max(defence // 4 & 255, 1)
    if gen <= 4 and bits & EXPLODES:
        defence = max(defence // 2, 1)
    return attack, defence


def _rare_terms(weapon: Weapon, target: Target) -> tuple[int, int]:
    """Attack and defence where not the user's and the target's stages alone decide."""
    bits, side, unaware = weapon.bits, weapon.special, target.odd & UNAWARE
    attack = weapon.attack_plain if unaware else weapon.attack
    if bits & FOE_ATTACK:
        attack = target.attack_plain if unaware else target.attack
    defence, plain = target.defences[side], target.plain_defences[side]
    if bits & CRITS:
        defence = min(defence, plain)
    return attack, plain if bits & IGNORES_STAGES else defence


def _gen5_on(gen: int, weapon: Weapon, damage: int, effect: int, mods: Mods) -> Hit:
    damage = modify(damage + 2, weapon.weather)
    if weapon.bits & CRITS:
        damage = damage * 3 // 2 if gen >= 6 else damage * 2
    return Hit(gen, damage, weapon.stab, effect, weapon.burned, mods[FINAL])


def _gen3_4(gen: int, weapon: Weapon, damage: int, effect: int, mods: Mods) -> Hit:
    if weapon.burned:
        damage = modify(damage, 2048)
    damage = modify(modify(damage, mods[EARLY]), weapon.weather)
    if gen == 3 and not weapon.special:
        damage = max(damage, 1)
    damage += 2
    if mods[MIDDLE] > ONE:
        damage = damage * 13 // 10
    return Hit(gen, damage, weapon.stab, effect, False, mods[FINAL])


def _gen1_2(gen: int, weapon: Weapon, damage: int, effect: int, mods: Mods) -> Hit:
    if mods[FINAL] > ONE:
        damage = damage * 11 // 10
    damage = min(max(damage, 1 if gen == 2 else 0), 997) + 2
    damage = damage * weapon.weather // ONE
    if weapon.stab > ONE:
        damage += damage // 2
    return Hit(gen, damage, effect=effect)


_FORMULAS = (_gen1_2, _gen1_2, _gen1_2, _gen3_4, _gen3_4, *[_gen5_on] * 5)
