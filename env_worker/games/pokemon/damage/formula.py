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
from simul.env_worker.games.pokemon.damage.queries import (
    FLYING,
    GHOST,
    GROUND,
    NORMAL,
    STELLAR,
    apply_modifier,
    chain_modifiers,
)
from simul.env_worker.games.pokemon.damage.rules import (
    ATTACK,
    EARLY,
    FINAL,
    FOE_DEFENCE,
    FOE_SPECIAL_DEFENCE,
    IMMUNE,
    MIDDLE,
    POWER,
    DamageTables,
)
from simul.env_worker.games.pokemon.damage.types import FACTS, ONE, UNAWARE, AttackerMove, Target

ROLLS = range(85, 101)  # hundredths
OLD_ROLLS = range(217, 256)  # 255ths, gens 1 and 2
_REMEMBERED = 16384  # hits, over all battles of the process: damage before the roll is a small number
ROLLED, EXACT, PSYWAVE = range(3)


class Hit(NamedTuple):
    """A hit before its roll.

    Attributes:
        effect: log2 of the type multiplier.
        final: modifier of the last stage.
        how: ROLLED; EXACT: `damage` is final; PSYWAVE: `damage` is the user's level.
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
def roll_moments(hit: Hit) -> tuple[int, int]:
    """Sum of the rolls and of their squares."""
    found = rolls(hit)
    return sum(found), sum([roll * roll for roll in found])


def _times_effectiveness(value: int, effect: int) -> int:
    """Doublings, or halvings rounded down."""
    return value << effect if effect >= 0 else value >> -effect


def _rolls_gen5_on(hit: Hit) -> list[int]:
    _, damage, stab, effect, burned, final, *_ = hit
    spread = [_times_effectiveness(apply_modifier(damage * roll // 100, stab), effect) for roll in ROLLS]
    if burned:
        spread = [apply_modifier(roll, 2048) for roll in spread]
    return [max(apply_modifier(roll, final), 1) for roll in spread]


def _rolls_gen4(hit: Hit) -> list[int]:
    _, damage, stab, effect, _, final, *_ = hit
    return [
        max(apply_modifier(_times_effectiveness(apply_modifier(damage * roll // 100, stab), effect), final), 1)
        for roll in ROLLS
    ]


def _rolls_gen3(hit: Hit) -> list[int]:
    damage = apply_modifier(_times_effectiveness(apply_modifier(hit.damage, hit.stab), hit.effect), hit.final)
    return [max(damage * roll // 100, 1) for roll in ROLLS]


def _rolls_gen1_2(hit: Hit) -> list[int]:
    damage = _times_effectiveness(hit.damage, hit.effect)
    return [max(damage * roll // 255 if damage > 1 else damage, 1) for roll in OLD_ROLLS]


_ROLLED = (_rolls_gen1_2, _rolls_gen1_2, _rolls_gen1_2, _rolls_gen3, _rolls_gen4, *[_rolls_gen5_on] * 5)


_BY_WEIGHT = ((2000, 120), (1000, 100), (500, 80), (250, 60), (100, 40))


def paired_power(gen: int, move: AttackerMove, target: Target) -> int:
    """Power of a move whose power depends on the target."""
    kind = move.power_kind
    if kind == WEIGHT:
        return next((power for bound, power in _BY_WEIGHT if target.weight >= bound), 20)
    if kind == WEIGHT_RATIO:
        times = move.weight // max(target.weight, 1)
        return 20 + 20 * times if 2 <= times < 5 else 120 if times >= 5 else 40
    if kind == SLOWER:
        return min(25 * target.speed // move.speed + 1, 150)
    if kind == FASTER:
        return (40, 60, 80, 120, 150)[min(move.speed // target.speed, 4)]
    hp, full, most = target.hp, target.max_hp, move.power
    if gen <= 4:
        return hp * most // full + 1
    return max((most * 100 * (hp * 4096 // full) + 2047) // 4096 // 100, 1)


def fixed_hit(gen: int, move: AttackerMove, target: Target) -> Hit:
    """The hit of a move with fixed damage."""
    kind, amount = move.fixed, move.amount
    hp = target.full_hp * target.hp // target.max_hp
    if kind in (FLAT, LEVEL):
        value = amount
    elif kind == TARGET_SHARE:
        value = max(hp * (amount - 1) // amount if amount == 4 else hp // amount, 1)
    elif kind == TARGET_ALL:
        value = target.full_hp
    elif kind == TO_USERS_HP:
        value = max(hp - move.hp, 0)
    elif kind == USERS_HP:
        value = move.hp
    else:
        assert kind == ROUGHLY_LEVEL
        return Hit(gen, amount, how=PSYWAVE)
    return Hit(gen, value, how=EXACT)


_ON_GROUND = FACTS["target_grounded"]
_CHANGING = types.WONDER_GUARD | types.TERA_SHELL | types.TAR_SHOT | types.STRONG_WINDS


def effectiveness(tables: DamageTables, move: AttackerMove, target: Target) -> int | None:
    """log2 of the type multiplier; None where the target is immune."""
    kind = move.type
    if move.oddity or move.scrappy or target.odd & _CHANGING or kind == STELLAR:
        return _special_effectiveness(tables, move, target)
    first, second, third = target.types
    immune = tables.immune[kind]
    if not target.facts & _ON_GROUND if kind == GROUND else immune[first] or immune[second] or immune[third]:
        return None
    exponents = tables.exponents[kind]
    return exponents[first] + exponents[second] + exponents[third]


def _special_effectiveness(tables: DamageTables, move: AttackerMove, target: Target) -> int | None:
    """The same, with everything that changes the type chart."""
    kind, oddity, odd, target_types = move.type, move.oddity, target.odd, target.types
    afloat = not target.facts & _ON_GROUND
    effect = sum([_against(tables, move, target, one) for one in target_types])
    if odd & types.TAR_SHOT and kind == FIRE:
        effect += 1
    if kind == STELLAR and odd & types.TERASTALLIZED:
        effect = 1
    if odd & types.TERA_SHELL and effect >= 0:
        effect = -1
    if kind == GROUND:
        immune = afloat and oddity != THOUSAND_ARROWS
    else:
        immune = any([_type_immune(tables, move, one) for one in target_types])
    if immune or (odd & types.WONDER_GUARD and effect <= 0 and not move.bits & STRUGGLES):
        return None
    return 0 if oddity == THOUSAND_ARROWS and afloat and FLYING in target_types else effect


def _against(tables: DamageTables, move: AttackerMove, target: Target, kind: int) -> int:
    """The exponent against one of the target's types, for moves and winds that change it."""
    value = tables.exponents[move.type][kind]
    if move.oddity == FREEZE_DRY and kind == WATER:
        value = 1
    elif move.oddity == FLYING_PRESS:
        value += tables.exponents[FLYING][kind]
    return 0 if target.odd & types.STRONG_WINDS and kind == FLYING and value > 0 else value


def _type_immune(tables: DamageTables, move: AttackerMove, kind: int) -> bool:
    if move.scrappy and kind == GHOST and move.type in (NORMAL, FIGHTING):
        return False
    return tables.immune[move.type][kind]


Mods = tuple[int, ...]  # by stage
TECHNICAL_POWER = 60
_SUPER, _RESISTED = FACTS["super_effective"], FACTS["resisted"]
_FASTER, _SLOWER, _TECHNICAL = FACTS["faster"], FACTS["slower"], FACTS["technical"]
_RARE = FOE_ATTACK | CRITS | IGNORES_STAGES


def hit_before_roll(tables: DamageTables, move: AttackerMove, target: Target) -> Hit | None:
    """One hit without critical hits, before its roll; None where it does no damage."""
    gen, fixed = tables.gen, move.fixed
    effect = effectiveness(tables, move, target)
    power = move.power if move.power_kind == PLAIN else paired_power(gen, move, target)
    mods: Mods | None = move.mods
    if move.waiting or target.guards:
        mods = _pair_modifiers(move, target, effect or 0, power)
    if effect is None or mods is None or move.weather == 0:
        return fixed_hit(gen, move, target) if gen == 1 and fixed != NOT_FIXED else None
    if fixed != NOT_FIXED:
        return fixed_hit(gen, move, target)
    power = max(apply_modifier(power, mods[POWER]), 1)
    if move.lifted and power < 60:
        power = 60
    attack, defence = _attack_and_defence(gen, move, target, mods)
    damage = move.level_term * power * attack // defence // 50
    return _FORMULAS[gen](gen, move, damage, effect, mods)


def _pair_modifiers(move: AttackerMove, target: Target, effect: int, power: int) -> Mods | None:
    """The move's modifiers with those that depend on user and target; None = immune."""
    facts = move.facts | target.facts
    if effect:
        facts |= _SUPER if effect > 0 else _RESISTED
    if move.speed != target.speed:
        facts |= _FASTER if move.speed > target.speed else _SLOWER
    if power <= TECHNICAL_POWER:
        facts |= _TECHNICAL
    mods = list(move.mods)
    for stage, mask, mod in move.waiting + target.guards:
        if facts & mask == mask:
            if stage == IMMUNE:
                return None
            mods[stage] = chain_modifiers(mods[stage], mod)
    return tuple(mods)


def _attack_and_defence(gen: int, move: AttackerMove, target: Target, mods: Mods) -> tuple[int, int]:
    """Attack and defence with their modifiers."""
    bits, side = move.bits, move.special
    attack, defence = move.attack, target.defences[side]
    if bits & _RARE or target.odd & UNAWARE:
        attack, defence = _special_attack_and_defence(move, target)
    attack = apply_modifier(attack, mods[ATTACK])
    mod = chain_modifiers(target.defence_mods[side], mods[FOE_SPECIAL_DEFENCE if side else FOE_DEFENCE])
    defence = max(apply_modifier(defence, mod), 1)
    if gen <= 2 and (attack >= 256 or defence >= 256):
        attack, defence = max(attack // 4 & 255, 1), max(defence // 4 & 255, 1)
    if gen <= 4 and bits & EXPLODES:
        defence = max(defence // 2, 1)
    return attack, defence


def _special_attack_and_defence(move: AttackerMove, target: Target) -> tuple[int, int]:
    """Attack and defence where a move or Unaware changes which stages count."""
    bits, side, unaware = move.bits, move.special, target.odd & UNAWARE
    attack = move.attack_plain if unaware else move.attack
    if bits & FOE_ATTACK:
        attack = target.attack_plain if unaware else target.attack
    defence, plain = target.defences[side], target.plain_defences[side]
    if bits & CRITS:
        defence = min(defence, plain)
    return attack, plain if bits & IGNORES_STAGES else defence


def _gen5_on(gen: int, move: AttackerMove, damage: int, effect: int, mods: Mods) -> Hit:
    damage = apply_modifier(damage + 2, move.weather)
    if move.bits & CRITS:
        damage = damage * 3 // 2 if gen >= 6 else damage * 2
    return Hit(gen, damage, move.stab, effect, move.burned, mods[FINAL])


def _gen3_4(gen: int, move: AttackerMove, damage: int, effect: int, mods: Mods) -> Hit:
    if move.burned:
        damage = apply_modifier(damage, 2048)
    damage = apply_modifier(apply_modifier(damage, mods[EARLY]), move.weather)
    if gen == 3 and not move.special:
        damage = max(damage, 1)
    damage += 2
    if mods[MIDDLE] > ONE:
        damage = damage * 13 // 10
    return Hit(gen, damage, move.stab, effect, False, mods[FINAL])


def _gen1_2(gen: int, move: AttackerMove, damage: int, effect: int, mods: Mods) -> Hit:
    if mods[FINAL] > ONE:
        damage = damage * 11 // 10
    damage = min(max(damage, 1 if gen == 2 else 0), 997) + 2
    damage = damage * move.weather // ONE
    if move.stab > ONE:
        damage += damage // 2
    return Hit(gen, damage, effect=effect)


_FORMULAS = (_gen1_2, _gen1_2, _gen1_2, _gen3_4, _gen3_4, *[_gen5_on] * 5)
