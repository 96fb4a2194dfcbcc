"""What attacks and switches are worth, one turn ahead. Pure: no battle, no dice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simul.env_worker.games.pokemon.damage.queries import speed
from simul.env_worker.games.pokemon.opponents.one_ply.combatants import Combatant, View
from simul.env_worker.games.pokemon.opponents.one_ply.damage import MOVES, Blow, Blows, Clash, blows
from simul.env_worker.games.pokemon.opponents.one_ply.hit_chance import odds, terms

KNOCKOUT_WORTH = 1.0  # a foe out of the way, beside the hp it had left
SPREAD = 0.75  # of a move's damage where it meets several
REVIVED = 0.5  # of its hp has a Pokemon that is brought back


class Danger(NamedTuple):
    """What the foes' best attack does: expected share of full hp, and the chance that it knocks out."""

    taken: float
    knockout: float


class Rating(NamedTuple):
    """value: what actions are compared by; dealt: expected share of full hp taken from each foe."""

    value: float
    dealt: tuple[float, ...]


def worth(blow: Blow, chance: float) -> float:
    """Of one move on one foe that succeeds with `chance`."""
    return chance * (blow.dealt + KNOCKOUT_WORTH * blow.knockout)


def danger(gen: int, view: View, foe: Combatant, target: Combatant, found: Blows) -> Danger:
    """Of a foe's blows, those nobody has seen yet among them."""
    most = Danger(0.0, 0.0)
    for slot, blow in found.items():
        chance = odds(gen, foe.names[slot] if slot < len(foe.names) else "", foe, target, view.around)
        most = Danger(max(most.taken, chance * blow.dealt), max(most.knockout, chance * blow.knockout))
    return most


def faster(gen: int, view: View, own: Combatant, foe: Combatant) -> bool:
    """Whether the own one moves first, priority apart."""
    ours = speed(gen, own.fighter, view.around) * view.winds[0]
    theirs = speed(gen, foe.fighter, view.around) * view.winds[1]
    return ours < theirs if view.trick_room else ours > theirs


class Duel:
    """One own Pokemon against the foes that are out.

    Attributes:
        user: it, with the moves it is offered.
        dangers: what each foe threatens, None where nobody stands.
    """

    def __init__(
        self, gen: int, view: View, user: Combatant, found: list[Blows], ally: Combatant | None = None
    ) -> None:
        """`found`: blows on each foe that stands, of each on the user, and on the ally (see `clashes`)."""
        self.user = user
        self._gen, self._view, self._ally = gen, view, ally
        standing = sum([foe is not None for foe in view.foes])
        ours, theirs = iter(found), iter(found[standing:])
        self._blows = [None if foe is None else next(ours) for foe in view.foes]
        self.dangers = [None if foe is None else danger(gen, view, foe, user, next(theirs)) for foe in view.foes]
        self._on_ally = found[-1] if ally is not None else {}
        self._faster = [foe is None or faster(gen, view, user, foe) for foe in view.foes]

    def rate(self, slot: int, target: int, *, tera: bool = False) -> Rating:
        """The move in `slot` at foe number `target`, or at whomever it meets (-1)."""
        name, key = self.user.names[slot], slot + MOVES if tera else slot
        move = terms(self._gen, name)
        where = [i for i, foe in enumerate(self._view.foes) if foe is not None and target in (i, -1)]
        spread = move.target in ("allAdjacent", "allAdjacentFoes")
        share = 1.0 if not where or spread else 1 / len(where)
        if spread and len(where) + (self._ally is not None) > 1:
            share = SPREAD
        share *= self._acts(move.priority)
        value, dealt = 0.0, [0.0] * len(self._view.foes)
        for i in where:
            foe, blow = self._view.foes[i], (self._blows[i] or {}).get(key)
            if foe is not None and blow is not None:
                chance = share * odds(self._gen, name, self.user, foe, self._view.around)
                value += worth(blow, chance)
                dealt[i] = chance * blow.dealt
        if move.target == "allAdjacent" and key in self._on_ally:
            value -= worth(self._on_ally[key], share)
        return Rating(value, tuple(dealt))

    def margin(self) -> float:
        """What it deals in one turn less what it takes, as shares of what foes and itself have left."""
        deals = takes = 0.0
        for i, foe in enumerate(self._view.foes):
            risk = self.dangers[i]
            if foe is None or risk is None:
                continue
            best = max([self.rate(slot, i).dealt[i] for slot in range(len(self.user.names))], default=0.0)
            deals = max(deals, best / max(foe.hp, 0.01))
            takes = max(takes, risk.taken / (self.user.hp or REVIVED))
        return deals - min(takes, 1.0)

    def _acts(self, priority: int) -> float:
        """Chance that it is not knocked out before its move."""
        alive = 1.0
        for first, risk in zip(self._faster, self.dangers):
            if risk is not None and priority <= 0 and (priority < 0 or not first):
                alive = min(alive, 1.0 - risk.knockout)
        return alive


def duels(
    gen: int, view: View, users: Sequence[Combatant], *, tera: bool = False, ally: Combatant | None = None
) -> list[Duel]:
    """Of each of `users` alone, reckoned in one go. `tera`: what they do after terastallizing is wanted, too."""
    each = [clashes(view, user, tera, ally) for user in users]
    found = iter(blows(gen, [clash for group in each for clash in group], view.around))
    return [Duel(gen, view, user, [next(found) for _ in group], ally) for user, group in zip(users, each)]


def clashes(view: View, user: Combatant, tera: bool, ally: Combatant | None) -> list[Clash]:
    """Whose blows count in a duel."""
    standing = [foe for foe in view.foes if foe is not None]
    wanted = [Clash(user, foe, view.foe_screens, tera) for foe in standing]
    wanted += [Clash(foe, user, view.own_screens) for foe in standing]
    return wanted if ally is None else [*wanted, Clash(user, ally, view.own_screens, tera)]
