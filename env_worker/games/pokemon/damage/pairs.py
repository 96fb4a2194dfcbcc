"""Damage of one seat's Pokemon to its foes, cached until one of its inputs changes."""

from __future__ import annotations

import struct
from functools import cache

from simul.env_worker.games.pokemon.damage.attacker import attacker_move, attacker_state, same_after_tera, terastallized
from simul.env_worker.games.pokemon.damage.formula import hit_before_roll, number_of_rolls, roll_moments
from simul.env_worker.games.pokemon.damage.moves import DamageMove, damage_move
from simul.env_worker.games.pokemon.damage.rules import tables
from simul.env_worker.games.pokemon.damage.target import target
from simul.env_worker.games.pokemon.damage.types import AttackerMove, Fighter, Surroundings, Target

MOVES, FORMS = 4, 2  # as it is, terastallized
PAIR_NUMBERS = FORMS * MOVES * 2
MOST_DAMAGE = 2.0  # of the foe's full hp
VARIANCE_UNIT = 0.01
MOST_VARIANCE = 4.0
_MEAN_AND_VARIANCE = struct.Struct("<2e")
_NOTHING = _MEAN_AND_VARIANCE.pack(0.0, 0.0)

Moves = tuple[tuple[str, DamageMove | None], ...]


class Attacker:
    """One user with its damaging moves, as it is and terastallized.

    Attributes:
        moves: each with the place of its numbers, MOVES * terastallized + slot.
        known: cached numbers, by defender.
    """

    __slots__ = ("known", "moves")

    def __init__(self, gen: int, user: Fighter, moves: Moves, can_tera: bool, around: Surroundings) -> None:
        known = tables(gen)
        state = attacker_state(known, user, around)
        changed = terastallized(known, state) if can_tera else None
        self.known: dict[Defender, bytes] = {}
        self.moves: list[tuple[int, AttackerMove]] = []
        for place, (name, move) in enumerate(moves):
            if move is None:
                continue
            made = attacker_move(known, state, name, move)
            self.moves.append((place, made))
            if changed is not None:
                if not same_after_tera(gen, changed, state, move, made):
                    made = attacker_move(known, changed, name, move)
                self.moves.append((MOVES + place, made))


class Defender:
    """One foe behind its screens; moves with Mold Breaker ignore its ability."""

    __slots__ = ("_bare", "_how", "_known", "_whole")

    def __init__(
        self, gen: int, foe: Fighter, screens: tuple[str, ...], around: Surroundings, known: dict[Target, Target]
    ) -> None:
        """`known`: interns equal targets."""
        self._how = (tables(gen), foe, screens, around)
        self._known = known
        self._whole = self._target(mold=False)
        self._bare: Target | None = None

    def target_for(self, move: AttackerMove) -> Target:
        """The target that this move hits."""
        if not move.mold:
            return self._whole
        if self._bare is None:
            self._bare = self._target(mold=True)
        return self._bare

    def _target(self, mold: bool) -> Target:
        made = target(*self._how, mold)
        return self._known.setdefault(made, made)


class PairDamageCache:
    """One seat's attackers and defenders in one battle; equal ones share one object."""

    def __init__(self, gen: int) -> None:
        self._gen = gen
        self._tables = tables(gen)
        self._rolls = number_of_rolls(gen)
        self._attackers: dict[tuple[Fighter, tuple[str, ...], bool, Surroundings], Attacker] = {}
        self._defenders: dict[tuple[Fighter, tuple[str, ...], Surroundings], Defender] = {}
        self._moves: dict[AttackerMove, AttackerMove] = {}
        self._targets: dict[Target, Target] = {}
        self._hits: dict[tuple[int, int], bytes] = {}  # by the ids of move and target, of which equals are one

    @property
    def remembered(self) -> int:
        """Number of cached attackers, defenders and hits."""
        return len(self._attackers) + len(self._defenders) + len(self._hits)

    def attacker(self, user: Fighter, names: tuple[str, ...], can_tera: bool, around: Surroundings) -> Attacker:
        """`names`: of its moves, as requests spell them."""
        key = (user, names, can_tera, around)
        found = self._attackers.get(key)
        if found is None:
            moves = known_moves(self._gen, names)
            found = self._attackers[key] = Attacker(self._gen, user, moves, can_tera, around)
            found.moves = [(place, self._moves.setdefault(w, w)) for place, w in found.moves]
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
            parts, hits = [_NOTHING] * (FORMS * MOVES), self._hits
            for place, move in attacker.moves:
                target = defender.target_for(move)
                key = (id(move), id(target))
                hit = hits.get(key)
                if hit is None:
                    hit = hits[key] = self._estimate(move, target)
                parts[place] = hit
            found = attacker.known[defender] = b"".join(parts)
        return found

    def _estimate(self, move: AttackerMove, target: Target) -> bytes:
        """Mean and variance of all hits of a move together, as fractions of full hp, scaled and capped."""
        hit = hit_before_roll(self._tables, move, target)
        if hit is None:
            return _NOTHING
        (total, squares), count, full = roll_moments(hit), self._rolls, target.full_hp
        mean = total / (count * full)
        variance = max(squares / (count * full * full) - mean * mean, 0.0)
        times, spread = move.hit_counts
        variance = times * variance + spread * mean * mean
        return _MEAN_AND_VARIANCE.pack(min(times * mean, MOST_DAMAGE), min(variance / VARIANCE_UNIT, MOST_VARIANCE))


@cache
def known_moves(gen: int, names: tuple[str, ...]) -> Moves:
    """The damaging moves among up to four, by slot; `names` as requests spell them."""
    return tuple([(move_id(name), damage_move(gen, name)) for name in names[:MOVES]])


def move_id(name: str) -> str:
    """`hiddenpowerfire60` -> hiddenpower, `return102` -> return."""
    return next((plain for plain in ("hiddenpower", "return", "frustration") if name.startswith(plain)), name)
