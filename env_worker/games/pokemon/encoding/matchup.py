"""How two Pokemon stand against each other: expected damage both ways, before stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simul.env_worker.games.pokemon.encoding.combatants import Armour, Weapon

# The best of one's moves against a target: physical and special, as fractions of full hp weighted by accuracy, before
# stages; and the largest effectiveness.
Attack = tuple[float, float, float]


class Blow(NamedTuple):
    """One move against one target: fraction of full hp it takes if it hits, before stages."""

    damage: float
    effectiveness: float
    stab: float
    tera_damage: float


NO_BLOW = Blow(0.0, 0.0, 0.0, 0.0)


def strongest(weapons: tuple[Weapon, ...], target: Armour) -> Attack:
    """The best of all weapons."""
    physical = special = effectiveness = 0.0
    taken, defences, attack, hp, per_hp = target
    for kind, is_special, stab, scale, defence, accuracy, foe_attack, fixed, flat, fraction, _, _ in weapons:
        multiplier = taken[kind]
        if multiplier == 0.0:
            continue
        if fixed:
            damage = (fraction or flat / hp) * accuracy
        else:  # `_damage`, written out: this runs for every pair that a battle sees
            power = scale * attack if foe_attack else scale
            damage = (power / defences[defence] + 2) * (stab * multiplier) * per_hp * accuracy
        if is_special:
            if damage > special:
                special = damage
        elif damage > physical:
            physical = damage
        if multiplier > effectiveness:
            effectiveness = multiplier
    return physical, special, effectiveness


def blow(weapon: Weapon | None, target: Armour) -> Blow:
    """One weapon in detail."""
    if weapon is None:
        return NO_BLOW
    multiplier = target.multipliers[weapon.type]
    tera_damage = 0.0
    if weapon.tera_type:
        tera_multiplier = target.multipliers[weapon.tera_type]
        tera_damage = _damage(weapon, target, weapon.tera_stab * tera_multiplier) if tera_multiplier else 0.0
    if multiplier == 0.0:
        return Blow(0.0, 0.0, 0.0, tera_damage)
    return Blow(_damage(weapon, target, weapon.stab * multiplier), multiplier, weapon.stab - 1.0, tera_damage)


def exchange_numbers(
    deals: Attack, takes: Attack, own: Sequence[float], other: Sequence[float]
) -> tuple[float, float, float, float]:
    """`fields.POKEMON` from `deals` to `takes_effectiveness`; `own`, `other`: as `scene.Strength`."""
    deals_physical, deals_special, dealt_type = deals
    takes_physical, takes_special, taken_type = takes
    physical_dealt, special_dealt, physical_taken, special_taken = own
    foe_physical_dealt, foe_special_dealt, foe_physical_taken, foe_special_taken = other
    physical = deals_physical * physical_dealt * foe_physical_taken
    special = deals_special * special_dealt * foe_special_taken
    dealt = physical if physical > special else special
    physical = takes_physical * foe_physical_dealt * physical_taken
    special = takes_special * foe_special_dealt * special_taken
    taken = physical if physical > special else special
    return (
        dealt if dealt < 1.0 else 1.0,
        dealt_type / 4,
        taken if taken < 1.0 else 1.0,
        taken_type / 4,
    )


def _damage(weapon: Weapon, target: Armour, factor: float) -> float:
    if weapon.fixed:
        return weapon.fraction or weapon.flat / target.hp
    scale = weapon.scale * target.attack if weapon.foe_attack else weapon.scale
    return (scale / target.defences[weapon.defence] + 2) * factor * target.per_hp
