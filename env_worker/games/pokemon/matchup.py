"""How two Pokemon stand against each other: expected damage both ways, before stages."""

from __future__ import annotations

from typing import NamedTuple

from env_worker.games.pokemon.combatants import Armour, Arms, Body, Profile, Weapon, armour, arms
from env_worker.games.pokemon.movedex import Chart, type_chart


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


class Matchups:
    """Memoised by identity: profiles and bodies are interned here and live as long as the battle."""

    def __init__(self, gen: int) -> None:
        self._chart = type_chart(gen)
        self._bodies: dict[Body, Body] = {}
        self._profiles: dict[Profile, Profile] = {}
        self._arms: dict[int, Arms] = {}
        self._armour: dict[int, Armour] = {}
        self._attacks: dict[tuple[int, int], Attack] = {}
        self._pairs: dict[tuple[int, int], tuple[Attack, Attack]] = {}

    def intern(self, profile: Profile) -> Profile:
        """The one profile that equals this one; only such profiles may be asked about."""
        body = self._bodies.setdefault(profile.body, profile.body)
        profile = profile._replace(body=body)
        return self._profiles.setdefault(profile, profile)

    def pair(self, own: Profile, other: Profile) -> tuple[Attack, Attack]:
        """`own` on `other`, and the other way round."""
        key = (id(own), id(other))
        pair = self._pairs.get(key)
        if pair is None:
            pair = self._pairs[key] = (self._attack(own, other.body), self._attack(other, own.body))
        return pair

    def blows(self, user: Profile, target: Body) -> list[Blow]:
        """Each of a user's moves, by slot."""
        armoured = self._target(target)
        return [blow(self._chart, weapon, armoured) for weapon in self._arms_of(user).slots]

    def _attack(self, user: Profile, target: Body) -> Attack:
        key = (id(user), id(target))
        found = self._attacks.get(key)
        if found is None:
            weapons = self._arms_of(user).all
            found = self._attacks[key] = strongest(self._chart, weapons, self._target(target))
        return found

    def _arms_of(self, profile: Profile) -> Arms:
        found = self._arms.get(id(profile))
        if found is None:
            found = self._arms[id(profile)] = arms(profile)
        return found

    def _target(self, body: Body) -> Armour:
        found = self._armour.get(id(body))
        if found is None:
            found = self._armour[id(body)] = armour(body)
        return found


def strongest(chart: Chart, weapons: tuple[Weapon, ...], target: Armour) -> Attack:
    """The best of all weapons."""
    best = [0.0, 0.0]
    effectiveness = 0.0
    for weapon in weapons:
        multiplier = _effectiveness(chart, weapon.type, target)
        if multiplier == 0.0:
            continue
        damage = _damage(weapon, target, weapon.stab * multiplier) * weapon.accuracy
        if damage > best[weapon.special]:
            best[weapon.special] = damage
        if multiplier > effectiveness:
            effectiveness = multiplier
    return Attack(best[0], best[1], effectiveness)


def blow(chart: Chart, weapon: Weapon | None, target: Armour) -> Blow:
    """One weapon in detail."""
    if weapon is None:
        return NO_BLOW
    multiplier = _effectiveness(chart, weapon.type, target)
    tera_damage = 0.0
    if weapon.tera_type:
        tera_multiplier = _effectiveness(chart, weapon.tera_type, target)
        tera_damage = _damage(weapon, target, weapon.tera_stab * tera_multiplier) if tera_multiplier else 0.0
    if multiplier == 0.0:
        return Blow(0.0, 0.0, 0.0, tera_damage)
    return Blow(_damage(weapon, target, weapon.stab * multiplier), multiplier, weapon.stab - 1.0, tera_damage)


def _damage(weapon: Weapon, target: Armour, factor: float) -> float:
    if weapon.fixed:
        return weapon.fraction or weapon.flat / target.hp
    scale = weapon.scale * target.attack if weapon.foe_attack else weapon.scale
    return (scale / target.defences[weapon.defence] + 2) * factor * target.per_hp


def _effectiveness(chart: Chart, kind: int, target: Armour) -> float:
    if target.immune and target.immune == kind:
        return 0.0
    row, types = chart[kind], target.types
    return row[types[0]] if len(types) == 1 else row[types[0]] * row[types[1]]
