"""What moves would do now: our damage formula on a handful of pairs, all of them in one go."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from env_worker.games.pokemon.damage import columns as col
from env_worker.games.pokemon.damage.block import MOVES, Attacker, Moves, known_moves
from env_worker.games.pokemon.damage.facts import FACTS
from env_worker.games.pokemon.damage.fighter import Fighter, Surroundings
from env_worker.games.pokemon.damage.formula import rolls
from env_worker.games.pokemon.damage.moves import NO_ODDITY, NOT_FIXED, OWN_TYPE, PHYSICAL, PLAIN, SPECIAL, DamageMove
from env_worker.games.pokemon.damage.tables import tables
from env_worker.games.pokemon.damage.targets import guards_of, target
from env_worker.games.pokemon.damage.weapons import Row
from env_worker.games.pokemon.one_ply.combatants import Combatant

ASSUMED_POWER = 75  # of a foe's attacks of its own types that nobody has seen
REMEMBERED = 4096  # attackers, and targets, over all battles of the process


class Clash(NamedTuple):
    """One attacks another, who stands behind `screens`. tera: its moves after terastallizing are wanted, too."""

    user: Combatant
    target: Combatant
    screens: tuple[str, ...] = ()
    tera: bool = False


class Blow(NamedTuple):
    """What a move does to a target if it hits.

    Attributes:
        dealt: expected share of full hp, no more than is left.
        knockout: chance that nothing is left.
    """

    dealt: float
    knockout: float


Blows = dict[int, Blow]  # by move slot; + 4 after terastallizing; from slot 4 on of a foe: attacks nobody has seen


def blows(gen: int, clashes: list[Clash], around: Surroundings) -> list[Blows]:
    """Of every clash, without moves that do no damage of their own."""
    if not clashes:
        return []
    attackers = [_attacker(gen, clash.user.fighter, clash.user.names, clash.user.guess, clash.tera, around)
                 for clash in clashes]  # fmt: skip
    counts = [len(attacker.slots) for attacker in attackers]
    if not any(counts):  # nobody attacks
        return [{} for _ in clashes]
    pair = np.repeat(np.arange(len(clashes)), counts)
    weapons = np.concatenate([attacker.rows for attacker in attackers])
    known = [_target(gen, clash.target.fighter, clash.screens, around, False) for clash in clashes]
    targets = np.array(known, dtype=np.int64)[pair]
    if any(attacker.mold for attacker in attackers):
        bare = [_target(gen, clash.target.fighter, clash.screens, around, True) for clash in clashes]
        targets = np.where(weapons[:, col.W_MOLD, None] != 0, np.array(bare, dtype=np.int64)[pair], targets)
    waiting = max(attacker.waiting for attacker in attackers)
    damage = rolls(tables(gen), weapons, targets, waiting, max(map(guards_of, known)))
    damage = damage * np.concatenate([attacker.hits for attacker in attackers])[:, :1]
    full = targets[:, col.T_FULL_HP, None]
    left = np.maximum(np.array([clash.target.hp for clash in clashes])[pair, None] * full, 1.0)
    dealt = (np.minimum(damage, left) / full).mean(axis=1).tolist()
    knockouts = (damage >= left).mean(axis=1).tolist()
    found = iter([Blow(*numbers) for numbers in zip(dealt, knockouts)])
    return [{slot: next(found) for slot in attacker.slots.tolist()} for attacker in attackers]


@lru_cache(maxsize=REMEMBERED)
def _attacker(
    gen: int, user: Fighter, names: tuple[str, ...], guess: bool, tera: bool, around: Surroundings
) -> Attacker:
    moves = known_moves(gen, names)
    if guess:
        moves = (*moves, *[("", None)] * (MOVES - len(moves)), *_assumed(user))
    return Attacker(gen, user, moves, tera, around)


@lru_cache(maxsize=REMEMBERED)
def _target(gen: int, foe: Fighter, screens: tuple[str, ...], around: Surroundings, mold: bool) -> Row:
    return target(tables(gen), foe, screens, around, mold)


def _assumed(user: Fighter) -> Moves:
    """An attack of each of its types, from the better side."""
    category = PHYSICAL if user.stats[1] >= user.stats[3] else SPECIAL
    return tuple([("", _plain_attack(kind, category)) for kind in user.types])


def _plain_attack(kind: int, category: int) -> DamageMove:
    return DamageMove(
        type=kind, category=category, power=ASSUMED_POWER, power_kind=PLAIN, type_kind=OWN_TYPE, fixed=NOT_FIXED,
        amount=0, oddity=NO_ODDITY, bits=0, mask=FACTS["meets_screens"], priority=0, few_hits=False, hits=(1.0, 0.0),
    )  # fmt: skip
