"""How two Pokemon stand against each other: expected damage both ways, before stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from env_worker.games.pokemon.combatants import Armour, Arms, Body, Profile, Weapon, armour, arms


class Attack(NamedTuple):
    """The best of one's moves against a target: fractions of full hp weighted by accuracy, before stages."""

    physical: float
    special: float
    effectiveness: float


class Blow(NamedTuple):
    """One move against one target: fraction of full hp it takes if it hits, before stages."""

    damage: float
    effectiveness: float
    stab: float
    tera_damage: float


NO_BLOW = Blow(0.0, 0.0, 0.0, 0.0)


Pair = tuple[Attack, Attack]


class Matchups:
    """Memoised by identity: profiles and bodies are interned here and live as long as the battle."""

    def __init__(self, gen: int) -> None:
        self._gen = gen
        self._bodies: dict[Body, Body] = {}
        self._profiles: dict[Profile, Profile] = {}
        self._arms: dict[int, Arms] = {}
        self._armour: dict[int, Armour] = {}
        # Small tables, by whom one looks at: a look-up in one table of them all misses the cache.
        self._attacks: dict[int, dict[int, Attack]] = {}  # target -> user
        self._pairs: dict[int, dict[int, Pair]] = {}
        self._blows: dict[tuple[int, int], list[Blow]] = {}

    def intern(self, profile: Profile) -> Profile:
        """The one profile that equals this one; only such profiles may be asked about."""
        body = self._bodies.setdefault(profile.body, profile.body)
        profile = profile._replace(body=body)
        return self._profiles.setdefault(profile, profile)

    def pair(self, own: Profile, other: Profile) -> Pair:
        """`own` on `other`, and the other way round."""
        pairs = self.pairs_with(other)
        pair = pairs.get(id(own))
        if pair is None:
            pair = pairs[id(own)] = (self._attack(own, other.body), self._attack(other, own.body))
        return pair

    def pairs_with(self, other: Profile) -> dict[int, Pair]:
        """Those that somebody has asked for: id of a profile -> `pair(that profile, other)`."""
        pairs = self._pairs.get(id(other))
        if pairs is None:
            pairs = self._pairs[id(other)] = {}
        return pairs

    def blows(self, user: Profile, target: Body) -> list[Blow]:
        """Each of a user's moves, by slot."""
        key = (id(user), id(target))
        found = self._blows.get(key)
        if found is None:
            armoured = self._target(target)
            found = self._blows[key] = [blow(weapon, armoured) for weapon in self._arms_of(user).slots]
        return found

    def _attack(self, user: Profile, target: Body) -> Attack:
        attacks = self._attacks.get(id(target))
        if attacks is None:
            attacks = self._attacks[id(target)] = {}
        found = attacks.get(id(user))
        if found is None:
            found = attacks[id(user)] = strongest(self._arms_of(user).all, self._target(target))
        return found

    def _arms_of(self, profile: Profile) -> Arms:
        found = self._arms.get(id(profile))
        if found is None:
            found = self._arms[id(profile)] = arms(profile)
        return found

    def _target(self, body: Body) -> Armour:
        found = self._armour.get(id(body))
        if found is None:
            found = self._armour[id(body)] = armour(self._gen, body)
        return found


def strongest(weapons: tuple[Weapon, ...], target: Armour) -> Attack:
    """The best of all weapons."""
    physical = special = effectiveness = 0.0
    taken = target.multipliers
    for weapon in weapons:
        multiplier = taken[weapon.type]
        if multiplier == 0.0:
            continue
        damage = _damage(weapon, target, weapon.stab * multiplier) * weapon.accuracy
        if weapon.special:
            if damage > special:
                special = damage
        elif damage > physical:
            physical = damage
        if multiplier > effectiveness:
            effectiveness = multiplier
    return Attack(physical, special, effectiveness)


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


def pair_numbers(pair: Pair, own: Sequence[float], other: Sequence[float], trick_room: bool) -> tuple[float, ...]:
    """`fields.POKEMON` from `deals` to `moves_first`; `own`, `other`: as `scene.Factors`."""
    (deals_physical, deals_special, dealt_type), (takes_physical, takes_special, taken_type) = pair
    physical_dealt, special_dealt, physical_taken, special_taken, speed = own
    foe_physical_dealt, foe_special_dealt, foe_physical_taken, foe_special_taken, foe_speed = other
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
        0.0 if speed == foe_speed else 1.0 if (speed > foe_speed) != trick_room else -1.0,
    )


def _damage(weapon: Weapon, target: Armour, factor: float) -> float:
    if weapon.fixed:
        return weapon.fraction or weapon.flat / target.hp
    scale = weapon.scale * target.attack if weapon.foe_attack else weapon.scale
    return (scale / target.defences[weapon.defence] + 2) * factor * target.per_hp
