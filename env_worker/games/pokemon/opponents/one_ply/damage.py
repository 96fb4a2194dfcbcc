"""What moves would do now: our damage formula on a handful of pairs."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from simul.env_worker.games.pokemon.damage.formula import meet, number_of_rolls, rolls
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
from simul.env_worker.games.pokemon.damage.types import FACTS, Fighter, Surroundings, Target, Weapon
from simul.env_worker.games.pokemon.opponents.one_ply.combatants import Combatant

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
    damage, most, left = [], [], []
    for clash, attacker in zip(clashes, attackers):
        defender = _defender(gen, clash.target.fighter, clash.screens, around)
        for _, weapon in attacker.weapons:
            target = defender.facing(weapon)
            damage.append(_every_roll(gen, weapon, target))
            most.append(target.full_hp)
            left.append(max(clash.target.hp * target.full_hp, 1.0))
    if not damage:  # nobody attacks
        return [{} for _ in clashes]
    rolled, full, remaining = np.array(damage), np.array(most)[:, None], np.array(left)[:, None]
    dealt = (np.minimum(rolled, remaining) / full).mean(axis=1).tolist()
    knockouts = (rolled >= remaining).mean(axis=1).tolist()
    found = iter([Blow(*numbers) for numbers in zip(dealt, knockouts)])
    return [{place: next(found) for place, _ in attacker.weapons} for attacker in attackers]


def _every_roll(gen: int, weapon: Weapon, target: Target) -> list[float]:
    """Damage in points, of all blows of the move together."""
    hit = meet(tables(gen), weapon, target)
    times = weapon.blows[0]
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
