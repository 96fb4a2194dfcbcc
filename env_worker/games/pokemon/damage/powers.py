"""Power that follows from one or both Pokemon, and damage without any power."""

from __future__ import annotations

from simul.env_worker.games.pokemon.damage.fighter import Fighter
from simul.env_worker.games.pokemon.damage.moves import (
    BOOSTS,
    FALLEN,
    FASTER,
    FLAT,
    LEVEL,
    NO_ITEM,
    PINCH,
    ROUGHLY_LEVEL,
    SLOWER,
    TARGET_ALL,
    TARGET_HP,
    TARGET_SHARE,
    TERA_TYPE,
    TO_USERS_HP,
    USER_HP,
    USERS_HP,
    WEIGHT,
    WEIGHT_RATIO,
    DamageMove,
)
from simul.env_worker.games.pokemon.damage.rolls import EXACT, PSYWAVE, Hit
from simul.env_worker.games.pokemon.damage.state import STELLAR
from simul.env_worker.games.pokemon.damage.terms import Target, Weapon

LAST_PAIRED = TARGET_HP  # the kinds from WEIGHT on need both
_BY_WEIGHT = ((2000, 120), (1000, 100), (500, 80), (250, 60), (100, 40))


def user_power(gen: int, user: Fighter, move: DamageMove) -> int:
    """Power before modifiers, as far as it follows from the user alone."""
    kind, power = move.power_kind, move.power
    if kind == USER_HP:
        return max(power * user.hp // user.max_hp, 1)
    if kind == PINCH:
        return _pinch(gen, user)
    if kind == BOOSTS:
        return power + 20 * sum(stage for stage in user.stages if stage > 0)
    if kind == NO_ITEM:
        return power if user.item and not user.item.endswith("gem") else 2 * power
    if kind == FALLEN:
        return power + 50 * user.down
    return 100 if move.type_kind == TERA_TYPE and user.terastallized and user.tera == STELLAR else power


def _pinch(gen: int, user: Fighter) -> int:
    """Flail and reversal."""
    steps, parts = ((2, 6, 13, 22, 43), 64) if gen == 4 else ((2, 5, 10, 17, 33), 48)
    share = max(user.hp * parts // user.max_hp, 1)
    for bound, power in zip(steps, (200, 150, 100, 80, 40)):
        if share < bound:
            return power
    return 20


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
