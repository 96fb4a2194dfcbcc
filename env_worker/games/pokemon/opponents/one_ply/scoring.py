"""Scores of attacks and switches, one turn ahead. Pure: no battle, no random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simul.env_worker.games.pokemon.damage.queries import speed
from simul.env_worker.games.pokemon.opponents.one_ply.combatants import Combatant, View
from simul.env_worker.games.pokemon.opponents.one_ply.damage import (
    MOVES,
    AttackPair,
    HitEstimate,
    HitEstimates,
    estimate_hits,
)
from simul.env_worker.games.pokemon.opponents.one_ply.hit_chance import hit_chance
from simul.env_worker.games.pokemon.tables.hit_terms import hit_terms

KNOCKOUT_WORTH = 1.0  # value of a knock-out, on top of the hp it takes
SPREAD = 0.75  # factor on the damage of a move with several targets
REVIVED = 0.5  # hp fraction of a revived Pokemon


class Threat(NamedTuple):
    """A foe's best attack: expected share of full hp, and the chance that it knocks out."""

    taken: float
    knockout: float


class Rating(NamedTuple):
    """value: what actions are compared by; dealt: expected share of full hp taken from each foe."""

    value: float
    dealt: tuple[float, ...]


def hit_score(hit: HitEstimate, chance: float) -> float:
    """Value of a hit that succeeds with `chance`."""
    return chance * (hit.dealt + KNOCKOUT_WORTH * hit.knockout)


def threat_of(gen: int, view: View, foe: Combatant, target: Combatant, found: HitEstimates) -> Threat:
    """The worst of a foe's hits, unseen attacks included."""
    most = Threat(0.0, 0.0)
    for slot, hit in found.items():
        chance = hit_chance(gen, foe.names[slot] if slot < len(foe.names) else "", foe, target, view.around)
        most = Threat(max(most.taken, chance * hit.dealt), max(most.knockout, chance * hit.knockout))
    return most


def faster(gen: int, view: View, own: Combatant, foe: Combatant) -> bool:
    """Whether the own one moves first, priority apart."""
    ours = speed(gen, own.fighter, view.around) * view.winds[0]
    theirs = speed(gen, foe.fighter, view.around) * view.winds[1]
    return ours < theirs if view.trick_room else ours > theirs


class OnePlyMatchup:
    """One own Pokemon against the foes that are out.

    Attributes:
        user: it, with the moves it is offered.
        threats: of each foe, None = empty slot.
    """

    def __init__(
        self, gen: int, view: View, user: Combatant, found: list[HitEstimates], ally: Combatant | None = None
    ) -> None:
        """`found`: estimates of `attack_pairs`, in its order."""
        self.user = user
        self._gen, self._view, self._ally = gen, view, ally
        standing = sum([foe is not None for foe in view.foes])
        ours, theirs = iter(found), iter(found[standing:])
        self._hits = [None if foe is None else next(ours) for foe in view.foes]
        self.threats = [None if foe is None else threat_of(gen, view, foe, user, next(theirs)) for foe in view.foes]
        self._on_ally = found[-1] if ally is not None else {}
        self._faster = [foe is None or faster(gen, view, user, foe) for foe in view.foes]

    def rate(self, slot: int, target: int, *, tera: bool = False) -> Rating:
        """The move in `slot` at foe number `target`, or at all that it reaches (-1)."""
        name, key = self.user.names[slot], slot + MOVES if tera else slot
        move = hit_terms(self._gen, name)
        where = [i for i, foe in enumerate(self._view.foes) if foe is not None and target in (i, -1)]
        spread = move.target in ("allAdjacent", "allAdjacentFoes")
        share = 1.0 if not where or spread else 1 / len(where)
        if spread and len(where) + (self._ally is not None) > 1:
            share = SPREAD
        share *= self._acts(move.priority)
        value, dealt = 0.0, [0.0] * len(self._view.foes)
        for i in where:
            foe, hit = self._view.foes[i], (self._hits[i] or {}).get(key)
            if foe is not None and hit is not None:
                chance = share * hit_chance(self._gen, name, self.user, foe, self._view.around)
                value += hit_score(hit, chance)
                dealt[i] = chance * hit.dealt
        if move.target == "allAdjacent" and key in self._on_ally:
            value -= hit_score(self._on_ally[key], share)
        return Rating(value, tuple(dealt))

    def margin(self) -> float:
        """Damage dealt in one turn less damage taken, as shares of the hp that is left."""
        deals = takes = 0.0
        for i, foe in enumerate(self._view.foes):
            threat = self.threats[i]
            if foe is None or threat is None:
                continue
            best = max([self.rate(slot, i).dealt[i] for slot in range(len(self.user.names))], default=0.0)
            deals = max(deals, best / max(foe.hp, 0.01))
            takes = max(takes, threat.taken / (self.user.hp or REVIVED))
        return deals - min(takes, 1.0)

    def _acts(self, priority: int) -> float:
        """Chance that it is not knocked out before its move."""
        alive = 1.0
        for first, threat in zip(self._faster, self.threats):
            if threat is not None and priority <= 0 and (priority < 0 or not first):
                alive = min(alive, 1.0 - threat.knockout)
        return alive


def matchups(
    gen: int, view: View, users: Sequence[Combatant], *, tera: bool = False, ally: Combatant | None = None
) -> list[OnePlyMatchup]:
    """Matchups of each of `users`, computed in one call. `tera`: moves after terastallizing too."""
    each = [attack_pairs(view, user, tera, ally) for user in users]
    found = iter(estimate_hits(gen, [pair for group in each for pair in group], view.around))
    return [OnePlyMatchup(gen, view, user, [next(found) for _ in group], ally) for user, group in zip(users, each)]


def attack_pairs(view: View, user: Combatant, tera: bool, ally: Combatant | None) -> list[AttackPair]:
    """Attacker and target of every hit that a matchup needs."""
    standing = [foe for foe in view.foes if foe is not None]
    wanted = [AttackPair(user, foe, view.foe_screens, tera) for foe in standing]
    wanted += [AttackPair(foe, user, view.own_screens) for foe in standing]
    return wanted if ally is None else [*wanted, AttackPair(user, ally, view.own_screens, tera)]
