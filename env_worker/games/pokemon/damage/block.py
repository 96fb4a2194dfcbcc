"""The observation's damage numbers: own attackers on revealed foes, remembered until something they depend on changes.

attacker | foe.0 .. foe.5 | as it is, terastallized | move.0 .. move.3 | mean, variance
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from env_worker.games.pokemon.damage import columns as col
from env_worker.games.pokemon.damage.fighter import Fighter, Surroundings
from env_worker.games.pokemon.damage.formula import rolls
from env_worker.games.pokemon.damage.moves import DamageMove, damage_move
from env_worker.games.pokemon.damage.state import STELLAR
from env_worker.games.pokemon.damage.tables import tables
from env_worker.games.pokemon.damage.targets import guards_of, target
from env_worker.games.pokemon.damage.weapons import Row, weapon

MOVES, GUISES = 4, 2  # as it is, terastallized
PAIR_NUMBERS = GUISES * MOVES * 2
MOST_DAMAGE = 2.0  # of the foe's full hp
VARIANCE_UNIT = 0.01
MOST_VARIANCE = 4.0
_MOST_PAIRS = 2048  # remembered at once

Moves = tuple[tuple[str, DamageMove | None], ...]


class Attacker:
    """One user with its four moves in both guises, ready for the formula.

    Attributes:
        slots: int64 [S], where each weapon's numbers go: 4 * guise + move.
        rows: int64 [S, WEAPON_WIDTH].
        hits: float64 [S, 2], mean and variance of the number of blows.
        waiting: how many rules of a weapon wait for the target at most.
        mold: True = one of them does not care about the target's ability.
    """

    __slots__ = ("hits", "mold", "rows", "slots", "waiting")

    def __init__(self, gen: int, user: Fighter, moves: Moves, can_tera: bool, around: Surroundings) -> None:
        known, found, hits = tables(gen), [], []
        slots = []
        guises = [user, terastallized(user)] if can_tera else [user]
        for guise, fighter in enumerate(guises):
            for place, (name, move) in enumerate(moves):
                if move is None:
                    continue
                slots.append(MOVES * guise + place)
                found.append(weapon(known, fighter, name, move, around))
                hits.append(blows(gen, fighter, move))
        self.rows = np.array(found, dtype=np.int64).reshape(-1, col.WEAPON_WIDTH)
        self.slots = np.array(slots, dtype=np.int64)
        self.hits = np.array(hits).reshape(-1, 2)
        used = self.rows[:, col.W_RULES + 2 :: 3] != col.ONE
        self.waiting = int(used.any(axis=0).sum())
        self.mold = bool(self.rows[:, col.W_MOLD].any())


def terastallized(user: Fighter) -> Fighter:
    """The same Pokemon after terastallizing; a stellar one keeps its types."""
    types = user.types if user.tera == STELLAR else (user.tera,)
    return user._replace(types=types, terastallized=True)


def blows(gen: int, user: Fighter, move: DamageMove) -> tuple[float, float]:
    """Mean and variance of how often a move hits."""
    if move.few_hits and user.ability == "skilllink":
        return 5.0, 0.0
    if move.few_hits and user.item == "loadeddice":
        return 4.5, 0.25
    if user.ability == "parentalbond" and move.hits[0] == 1.0:
        return (1.25 if gen >= 7 else 1.5), 0.0
    return move.hits


class DamageBlock:
    """Pairs of one seat in one battle."""

    def __init__(self, gen: int) -> None:
        self._gen = gen
        self._tables = tables(gen)
        self._users: dict[Any, int] = {}
        self._foes: dict[Any, int] = {}
        self._user_keys: list[Any] = []  # by number
        self._foe_keys: list[Any] = []
        self._attackers: dict[int, Attacker] = {}
        self._targets: dict[tuple[int, bool], Row] = {}
        self._pairs: dict[tuple[int, int], bytes] = {}

    def user(self, fighter: Fighter, names: tuple[str, ...], can_tera: bool, around: Surroundings) -> int:
        """A number for what `pair` asks about; equal users have equal numbers until `forget`."""
        return self._number(self._users, self._user_keys, (fighter, names, can_tera, around))

    def foe(self, fighter: Fighter, screens: tuple[str, ...], around: Surroundings) -> int:
        """The same for a target."""
        return self._number(self._foes, self._foe_keys, (fighter, screens, around))

    def pairs(self, users: list[int], foes: list[int]) -> list[bytes]:
        """PAIR_NUMBERS float16 for every user on every foe, users first."""
        known = self._pairs
        wanted = [(user, foe) for user in users for foe in foes]
        missing = [pair for pair in wanted if pair not in known]
        if missing:
            self._compute(missing)
        return [known[pair] for pair in wanted]

    def forget_if_full(self) -> None:
        """Before a decision: numbers given out earlier may become void."""
        if len(self._pairs) > _MOST_PAIRS:
            for table in (self._users, self._foes, self._attackers, self._targets, self._pairs):
                table.clear()
            self._user_keys.clear()
            self._foe_keys.clear()

    @staticmethod
    def _number(table: dict[Any, int], keys: list[Any], key: Any) -> int:
        number = table.get(key)
        if number is None:
            number = table[key] = len(keys)
            keys.append(key)
        return number

    def _compute(self, missing: list[tuple[int, int]]) -> None:
        attackers = [self._attacker(user) for user, _ in missing]
        counts = [len(attacker.slots) for attacker in attackers]
        numbers = np.zeros((len(missing), GUISES * MOVES, 2), dtype=np.float16)
        if any(counts):
            pair = np.repeat(np.arange(len(missing)), counts)
            slot = np.concatenate([attacker.slots for attacker in attackers])
            numbers[pair, slot] = self._estimate(attackers, [foe for _, foe in missing], pair)
        for key, found in zip(missing, numbers):
            self._pairs[key] = found.tobytes()

    def _estimate(self, attackers: list[Attacker], foes: list[int], pair: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of every weapon on its target mean and variance [N, 2], as fractions of full hp, scaled and capped."""
        weapons = np.concatenate([attacker.rows for attacker in attackers])
        known = [self._target(foe, False) for foe in foes]
        targets = np.array(known, dtype=np.int64)[pair]
        if any(attacker.mold for attacker in attackers):
            bare = np.array([self._target(foe, True) for foe in foes], dtype=np.int64)[pair]
            targets = np.where(weapons[:, col.W_MOLD, None] != 0, bare, targets)
        waiting = max(attacker.waiting for attacker in attackers)
        guards = max(map(guards_of, known))
        damage = rolls(self._tables, weapons, targets, waiting, guards)
        hits = np.concatenate([attacker.hits for attacker in attackers])
        full, count = targets[:, col.T_FULL_HP], damage.shape[1]
        mean = damage.sum(axis=1) / (count * full)
        variance = np.maximum((damage * damage).sum(axis=1) / (count * full * full) - mean * mean, 0.0)
        variance = hits[:, 0] * variance + hits[:, 1] * mean * mean
        return np.minimum(np.stack((hits[:, 0] * mean, variance / VARIANCE_UNIT), axis=1), (MOST_DAMAGE, MOST_VARIANCE))

    def _attacker(self, number: int) -> Attacker:
        found = self._attackers.get(number)
        if found is None:
            user, names, can_tera, around = self._user_keys[number]
            found = self._attackers[number] = Attacker(self._gen, user, known_moves(self._gen, names), can_tera, around)
        return found

    def _target(self, number: int, mold: bool) -> Row:
        found = self._targets.get((number, mold))
        if found is None:
            foe, screens, around = self._foe_keys[number]
            found = self._targets[number, mold] = target(self._tables, foe, screens, around, mold)
        return found


@cache
def known_moves(gen: int, names: tuple[str, ...]) -> Moves:
    """The damaging moves among up to four, by slot; `names` as requests spell them."""
    return tuple([(move_id(name), damage_move(gen, name)) for name in names[:MOVES]])


def move_id(name: str) -> str:
    """`hiddenpowerfire60` -> hiddenpower, `return102` -> return."""
    return next((plain for plain in ("hiddenpower", "return", "frustration") if name.startswith(plain)), name)
