"""How two Pokemon of a battle of doubles stand against each other, before stages; remembered as long as the battle."""

from __future__ import annotations

from simul.env_worker.games.pokemon.encoding.combatants import Armour, Arms, Body, Profile, armour, arms
from simul.env_worker.games.pokemon.encoding.field_state import Factors
from simul.env_worker.games.pokemon.encoding.matchup import Attack, Blow, blow, exchange_numbers, strongest

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
        self._blows: dict[tuple[int, int], list[Blow]] = {}

    def intern(self, profile: Profile) -> Profile:
        """The one profile that equals this one; only such profiles may be asked about."""
        body = self._bodies.setdefault(profile.body, profile.body)
        profile = profile._replace(body=body)
        return self._profiles.setdefault(profile, profile)

    def pair(self, own: Profile, other: Profile) -> Pair:
        """`own` on `other`, and the other way round."""
        return self._attack(own, other.body), self._attack(other, own.body)

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


def pair_numbers(pair: Pair, own: Factors, other: Factors, trick_room: bool) -> tuple[float, ...]:
    """`fields.POKEMON` from `deals` to `moves_first`."""
    order = 0.0 if own.speed == other.speed else 1.0 if (own.speed > other.speed) != trick_room else -1.0
    return (*exchange_numbers(*pair, own.strength, other.strength), order)
