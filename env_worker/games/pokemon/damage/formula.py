"""The damage formula of one attacker's move on one target: integers throughout, as each generation's games count.

Plain Python: a decision meets a handful of new pairs, too few for arrays to pay.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from simul.env_worker.games.pokemon.damage import types
from simul.env_worker.games.pokemon.damage.moves import (
    CRITS,
    EXPLODES,
    FASTER,
    FIGHTING,
    FIRE,
    FLAT,
    FLYING_PRESS,
    FOE_ATTACK,
    FREEZE_DRY,
    IGNORES_STAGES,
    LEVEL,
    NOT_FIXED,
    PLAIN,
    ROUGHLY_LEVEL,
    SLOWER,
    STRUGGLES,
    TARGET_ALL,
    TARGET_SHARE,
    THOUSAND_ARROWS,
    TO_USERS_HP,
    USERS_HP,
    WATER,
    WEIGHT,
    WEIGHT_RATIO,
)
from simul.env_worker.games.pokemon.damage.queries import FLYING, GHOST, GROUND, NORMAL, STELLAR, chain, modify
from simul.env_worker.games.pokemon.damage.rules import (
    ATTACK,
    EARLY,
    FINAL,
    FOE_DEFENCE,
    FOE_SPECIAL_DEFENCE,
    IMMUNE,
    MIDDLE,
    POWER,
    Tables,
)
from simul.env_worker.games.pokemon.damage.types import FACTS, ONE, UNAWARE, Target, Weapon

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


def _rolls_gen5_on(hit: Hit) -> list[int]:
    _, damage, stab, effect, burned, final, *_ = hit
    spread = [_typed(modify(damage * roll // 100, stab), effect) for roll in ROLLS]
    if burned:
        spread = [modify(roll, 2048) for roll in spread]
    return [max(modify(roll, final), 1) for roll in spread]


def _rolls_gen4(hit: Hit) -> list[int]:
    _, damage, stab, effect, _, final, *_ = hit
    return [max(modify(_typed(modify(damage * roll // 100, stab), effect), final), 1) for roll in ROLLS]


def _rolls_gen3(hit: Hit) -> list[int]:
    damage = modify(_typed(modify(hit.damage, hit.stab), hit.effect), hit.final)
    return [max(damage * roll // 100, 1) for roll in ROLLS]


def _rolls_gen1_2(hit: Hit) -> list[int]:
    damage = _typed(hit.damage, hit.effect)
    return [max(damage * roll // 255 if damage > 1 else damage, 1) for roll in OLD_ROLLS]


_ROLLED = (_rolls_gen1_2, _rolls_gen1_2, _rolls_gen1_2, _rolls_gen3, _rolls_gen4, *[_rolls_gen5_on] * 5)


_BY_WEIGHT = ((2000, 120), (1000, 100), (500, 80), (250, 60), (100, 40))


def paired_power(gen: int, weapon: Weapon, target: Target) -> int:
    """Power of a weapon whose kind of power asks for the target."""
    kind = weapon.power_kind
    if kind == WEIGHT:
        return next((power for bound, power in _BY_WEIGHT if target.weight >= bound), 20)
    if kind == WEIGHT_RATIO:
        times = weapon.weight // max(target.weight, 1)
        return 20 + 20 * times if 2 <= times < 5 else 120 if times >= 5 else 40
    if kind == SLOWER:
        return min(25 * target.speed // weapon.speed + 1, 150)
    if kind == FASTER:
        return (40, 60, 80, 120, 150)[min(weapon.speed // target.speed, 4)]
    hp, full, most = target.hp, target.max_hp, weapon.power
    if gen <= 4:
        return hp * most // full + 1
    return max((most * 100 * (hp * 4096 // full) + 2047) // 4096 // 100, 1)


def fixed_hit(gen: int, weapon: Weapon, target: Target) -> Hit:
    """Of a weapon without power."""
    kind, amount = weapon.fixed, weapon.amount
    hp = target.full_hp * target.hp // target.max_hp
    if kind in (FLAT, LEVEL):
        value = amount
    elif kind == TARGET_SHARE:
        value = max(hp * (amount - 1) // amount if amount == 4 else hp // amount, 1)
    elif kind == TARGET_ALL:
        value = target.full_hp
    elif kind == TO_USERS_HP:
        value = max(hp - weapon.hp, 0)
    elif kind == USERS_HP:
        value = weapon.hp
    else:
        assert kind == ROUGHLY_LEVEL
        return Hit(gen, amount, how=PSYWAVE)
    return Hit(gen, value, how=EXACT)


_ON_GROUND = FACTS["target_grounded"]
_CHANGING = types.WONDER_GUARD | types.TERA_SHELL | types.TAR_SHOT | types.STRONG_WINDS


def effectiveness(tables: Tables, weapon: Weapon, target: Target) -> int | None:
    """log2 of the type multiplier; None where the target is immune."""
    kind = weapon.type
    if weapon.oddity or weapon.scrappy or target.odd & _CHANGING or kind == STELLAR:
        return _strange(tables, weapon, target)
    first, second = target.types
    immune = tables.immune[kind]
    if not target.facts & _ON_GROUND if kind == GROUND else immune[first] or immune[second]:
        return None
    exponents = tables.exponents[kind]
    return exponents[first] + exponents[second]


def _strange(tables: Tables, weapon: Weapon, target: Target) -> int | None:
    """The same, with everything that changes the type chart."""
    kind, oddity, odd, (first, second) = weapon.type, weapon.oddity, target.odd, target.types
    afloat = not target.facts & _ON_GROUND
    effect = _against(tables, weapon, target, first) + _against(tables, weapon, target, second)
    if odd & types.TAR_SHOT and kind == FIRE:
        effect += 1
    if kind == STELLAR and odd & types.TERASTALLIZED:
        effect = 1
    if odd & types.TERA_SHELL and effect >= 0:
        effect = -1
    if kind == GROUND:
        immune = afloat and oddity != THOUSAND_ARROWS
    else:
        immune = _barred(tables, weapon, first) or _barred(tables, weapon, second)
    if immune or (odd & types.WONDER_GUARD and effect <= 0 and not weapon.bits & STRUGGLES):
        return None
    return 0 if oddity == THOUSAND_ARROWS and afloat and FLYING in (first, second) else effect


def _against(tables: Tables, weapon: Weapon, target: Target, kind: int) -> int:
    """The exponent against one of the target's types, for moves and winds that change it."""
    value = tables.exponents[weapon.type][kind]
    if weapon.oddity == FREEZE_DRY and kind == WATER:
        value = 1
    elif weapon.oddity == FLYING_PRESS:
        value += tables.exponents[FLYING][kind]
    return 0 if target.odd & types.STRONG_WINDS and kind == FLYING and value > 0 else value


def _barred(tables: Tables, weapon: Weapon, kind: int) -> bool:
    if weapon.scrappy and kind == GHOST and weapon.type in (NORMAL, FIGHTING):
        return False
    return tables.immune[weapon.type][kind]


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
