"""Estimated hits of moves now: the damage formula on a few pairs."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from simul.env_worker.games.pokemon.damage.formula import hit_before_roll, number_of_rolls, rolls
from simul.env_worker.games.pokemon.damage.moves import (
    NO_ODDITY,
    NOT_FIXED,
    OWN_TYPE,
    PHYSICAL,
    PLAIN,
    SPECIAL,
    DamageMove,
)
from simul.env_worker.games.pokemon.damage.pairs import MOVES, Attacker, Defender, Moves, known_moves
from simul.env_worker.games.pokemon.damage.rules import tables
from simul.env_worker.games.pokemon.damage.types import FACTS, AttackerMove, Fighter, Surroundings, Target
from simul.env_worker.games.pokemon.opponents.one_ply.combatants import Combatant

ASSUMED_POWER = 75  # of a foe's attacks of its own types that it has not shown
REMEMBERED = 4096  # attackers, and defenders, over all battles of the process


class AttackPair(NamedTuple):
    """One attacks another, who stands behind `screens`. tera: its moves after terastallizing are wanted, too."""

    user: Combatant
    target: Combatant
    screens: tuple[str, ...] = ()
    tera: bool = False


class HitEstimate(NamedTuple):
    """What a move does to a target if it hits.

    Attributes:
        dealt: expected share of full hp, no more than is left.
        knockout: chance that nothing is left.
    """

    dealt: float
    knockout: float


# By move slot; + 4 after terastallizing; from slot 4 on of a foe: attacks that it has not shown.
HitEstimates = dict[int, HitEstimate]


def estimate_hits(gen: int, pairs: list[AttackPair], around: Surroundings) -> list[HitEstimates]:
    """Estimates for every pair, without moves that do no damage."""
    if not pairs:
        return []
    attackers = [_attacker(gen, pair.user.fighter, pair.user.names, pair.user.guess, pair.tera, around)
                 for pair in pairs]  # fmt: skip
    damage, most, left = [], [], []
    for pair, attacker in zip(pairs, attackers):
        defender = _defender(gen, pair.target.fighter, pair.screens, around)
        for _, move in attacker.moves:
            target = defender.target_for(move)
            damage.append(_every_roll(gen, move, target))
            most.append(target.full_hp)
            left.append(max(pair.target.hp * target.full_hp, 1.0))
    if not damage:  # no attack at all
        return [{} for _ in pairs]
    rolled, full, remaining = np.array(damage), np.array(most)[:, None], np.array(left)[:, None]
    dealt = (np.minimum(rolled, remaining) / full).mean(axis=1).tolist()
    knockouts = (rolled >= remaining).mean(axis=1).tolist()
    found = iter([HitEstimate(*numbers) for numbers in zip(dealt, knockouts)])
    return [{place: next(found) for place, _ in attacker.moves} for attacker in attackers]


def _every_roll(gen: int, move: AttackerMove, target: Target) -> list[float]:
    """Damage in points, of all hits of the move together."""
    hit = hit_before_roll(tables(gen), move, target)
    times = move.hit_counts[0]
    return [0.0] * number_of_rolls(gen) if hit is None else [times * roll for roll in rolls(hit)]


@lru_cache(maxsize=REMEMBERED)
def _attacker(
    gen: int, user: Fighter, names: tuple[str, ...], guess: bool, tera: bool, around: Surroundings
) -> Attacker:
    moves = known_moves(gen, names)
    if guess:
        moves = (*moves, *[("", None)] * (MOVES - len(moves)), *_assumed(user))
    return Attacker(gen, user, moves, tera, around)


@lru_cache(maxsize=REMEMBERED)
def _defender(gen: int, foe: Fighter, screens: tuple[str, ...], around: Surroundings) -> Defender:
    return Defender(gen, foe, screens, around, {})


def _assumed(user: Fighter) -> Moves:
    """An attack of each of its types, from the better side."""
    category = PHYSICAL if user.stats[1] >= user.stats[3] else SPECIAL
    return tuple([("", _plain_attack(kind, category)) for kind in user.types])


def _plain_attack(kind: int, category: int) -> DamageMove:
    return DamageMove(
        type=kind, category=category, power=ASSUMED_POWER, power_kind=PLAIN, type_kind=OWN_TYPE, fixed=NOT_FIXED,
        amount=0, oddity=NO_ODDITY, bits=0, mask=FACTS["meets_screens"], priority=0, few_hits=False, hits=(1.0, 0.0),
    )  # fmt: skip
