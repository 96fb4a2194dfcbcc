"""What one seat's Pokemon do to its foes, remembered until something it depends on changes."""

from __future__ import annotations

import struct
from functools import cache

from simul.env_worker.games.pokemon.damage.attacker import same_in, terastallized, weapon, wielder
from simul.env_worker.games.pokemon.damage.formula import meet, moments, number_of_rolls
from simul.env_worker.games.pokemon.damage.moves import DamageMove, damage_move
from simul.env_worker.games.pokemon.damage.rules import tables
from simul.env_worker.games.pokemon.damage.target import target
from simul.env_worker.games.pokemon.damage.types import Fighter, Surroundings, Target, Weapon

MOVES, GUISES = 4, 2  # as it is, terastallized
PAIR_NUMBERS = GUISES * MOVES * 2
MOST_DAMAGE = 2.0  # of the foe's full hp
VARIANCE_UNIT = 0.01
MOST_VARIANCE = 4.0
_MEAN_AND_VARIANCE = struct.Struct("<2e")
_NOTHING = _MEAN_AND_VARIANCE.pack(0.0, 0.0)

Moves = tuple[tuple[str, DamageMove | None], ...]


class Attacker:
    """One user with its damaging moves in both guises.

    Attributes:
        weapons: each with the place of its numbers, MOVES * guise + move.
        known: numbers on the defenders it has met.
    """

    __slots__ = ("known", "weapons")

    def __init__(self, gen: int, user: Fighter, moves: Moves, can_tera: bool, around: Surroundings) -> None:
        known = tables(gen)
        hands = wielder(known, user, around)
        changed = terastallized(known, hands) if can_tera else None
        self.known: dict[Defender, bytes] = {}
        self.weapons: list[tuple[int, Weapon]] = []
        for place, (name, move) in enumerate(moves):
            if move is None:
                continue
            made = weapon(known, hands, name, move)
            self.weapons.append((place, made))
            if changed is not None:
                if not same_in(gen, changed, hands, move, made):
                    made = weapon(known, changed, name, move)
                self.weapons.append((MOVES + place, made))


class Defender:
    """One foe behind its screens; some weapons do not care about its ability."""

    __slots__ = ("_bare", "_how", "_known", "_whole")

    def __init__(
        self, gen: int, foe: Fighter, screens: tuple[str, ...], around: Surroundings, known: dict[Target, Target]
    ) -> None:
        """`known`: where equal targets are one object."""
        self._how = (tables(gen), foe, screens, around)
        self._known = known
        self._whole = self._target(mold=False)
        self._bare: Target | None = None

    def facing(self, weapon: Weapon) -> Target:
        """What this weapon meets."""
        if not weapon.mold:
            return self._whole
        if self._bare is None:
            self._bare = self._target(mold=True)
        return self._bare

    def _target(self, mold: bool) -> Target:
        made = target(*self._how, mold)
        return self._known.setdefault(made, made)


class Pairs:
    """Of one seat in one battle. Equal users, and equal foes, are one object each."""

    def __init__(self, gen: int) -> None:
        self._gen = gen
        self._tables = tables(gen)
        self._rolls = number_of_rolls(gen)
        self._attackers: dict[tuple[Fighter, tuple[str, ...], bool, Surroundings], Attacker] = {}
        self._defenders: dict[tuple[Fighter, tuple[str, ...], Surroundings], Defender] = {}
        self._weapons: dict[Weapon, Weapon] = {}
        self._targets: dict[Target, Target] = {}
        self._hits: dict[tuple[int, int], bytes] = {}  # by the ids of weapon and target, of which equals are one

    @property
    def remembered(self) -> int:
        """Attackers, defenders, and weapons on targets."""
        return len(self._attackers) + len(self._defenders) + len(self._hits)

    def attacker(self, user: Fighter, names: tuple[str, ...], can_tera: bool, around: Surroundings) -> Attacker:
        """`names`: of its moves, as requests spell them."""
        key = (user, names, can_tera, around)
        found = self._attackers.get(key)
        if found is None:
            moves = known_moves(self._gen, names)
            found = self._attackers[key] = Attacker(self._gen, user, moves, can_tera, around)
            found.weapons = [(place, self._weapons.setdefault(w, w)) for place, w in found.weapons]
        return found

    def defender(self, foe: Fighter, screens: tuple[str, ...], around: Surroundings) -> Defender:
        key = (foe, screens, around)
        found = self._defenders.get(key)
        if found is None:
            found = self._defenders[key] = Defender(self._gen, foe, screens, around, self._targets)
        return found

    def numbers(self, attacker: Attacker, defender: Defender) -> bytes:
        """PAIR_NUMBERS float16."""
        found = attacker.known.get(defender)
        if found is None:
            parts, hits = [_NOTHING] * (GUISES * MOVES), self._hits
            for place, weapon in attacker.weapons:
                target = defender.facing(weapon)
                key = (id(weapon), id(target))
                hit = hits.get(key)
                if hit is None:
                    hit = hits[key] = self._estimate(weapon, target)
                parts[place] = hit
            found = attacker.known[defender] = b"".join(parts)
        return found

    def _estimate(self, weapon: Weapon, target: Target) -> bytes:
        """Mean and variance of all blows of a move together, as fractions of full hp, scaled and capped."""
        hit = meet(self._tables, weapon, target)
        if hit is None:
            return _NOTHING
        (total, squares), count, full = moments(hit), self._rolls, target.full_hp
        mean = total / (count * full)
        variance = max(squares / (count * full * full) - mean * mean, 0.0)
        times, spread = weapon.blows
        variance = times * variance + spread * mean * mean
        return _MEAN_AND_VARIANCE.pack(min(times * mean, MOST_DAMAGE), min(variance / VARIANCE_UNIT, MOST_VARIANCE))


@cache
def known_moves(gen: int, names: tuple[str, ...]) -> Moves:
    """The damaging moves among up to four, by slot; `names` as requests spell them."""
    return tuple([(move_id(name), damage_move(gen, name)) for name in names[:MOVES]])


def move_id(name: str) -> str:
    """`hiddenpowerfire60` -> hiddenpower, `return102` -> return."""
    return next((plain for plain in ("hiddenpower", "return", "frustration") if name.startswith(plain)), name)
