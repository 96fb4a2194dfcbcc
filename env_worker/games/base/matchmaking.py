"""Who plays whom: drawn from the configured shares, or an evaluation's pairings. For any number of seats."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from simul.common.config.game_description import POLICIES
from simul.common.config.matchups import Contestant, Pairing, result_key
from simul.common.config.opponents import is_own
from simul.common.config.schema import Config, OpponentsConfig

SELF_PLAY, PAST = POLICIES


class Matchup(NamedTuple):
    """Who plays in one game.

    Attributes:
        opponent: under which the outcome is counted: self_play, past, a scripted player, or a pairing's `result_key`.
        learner_seat: the seat whose outcome counts.
        seats: who plays each.
        learns: which seats' decisions are recorded, where the source records.
        mirror: (pairing, number) of the group of games with the same seeds; None where it is in none.
    """

    opponent: str
    learner_seat: int
    seats: tuple[Contestant, ...]
    learns: tuple[bool, ...]
    mirror: tuple[int, int] | None = None


def own_opponents(opponents: OpponentsConfig, pairings: Sequence[Pairing]) -> list[str]:
    """The opponents module:Class that a source plays: those of an evaluation, else those with a share."""
    if pairings:
        bots = {each.bot for pairing in pairings for each in (pairing.first, pairing.second)}
        return sorted(bot for bot in bots if is_own(bot))
    return sorted(name for name, share in opponents.classes.items() if share)


def asked_own_opponents(config: Config) -> list[str]:
    """The opponents module:Class that a run with this configuration plays against, its evaluations included."""
    evaluated = {name for name in config.evaluation.opponents if is_own(name)}
    return sorted(evaluated.union(own_opponents(config.opponents, ())))


class OpponentDraw:
    """Draws the opponents of each game from the configured shares; equal generators draw equally.

    Args:
        kinds: opponents that the game has, `self_play` and `past` first; those of the user's own are added.
        seats: players of a game.

    Attributes:
        past: policies that are past selves, sorted.
    """

    def __init__(self, opponents: OpponentsConfig, kinds: Sequence[str], seats: int, learner_policy: str) -> None:
        shares = opponents.shares()
        self._kinds = [*kinds, *(name for name in own_opponents(opponents, ()) if name not in kinds)]
        self._shares = [shares.get(kind, 0.0) for kind in self._kinds]
        self._seats = seats
        self._learner_policy = learner_policy
        self.past: list[str] = []

    def set_policies(self, names: Sequence[str]) -> None:
        """The policies that the server offers."""
        self.past = sorted(name for name in names if name.startswith("past/"))

    def draw(self, learner_seat: int, rng: random.Random) -> Matchup:
        """One kind of opponent, who plays all other seats. Without a past self, a game against one is self-play."""
        kind = rng.choices(self._kinds, self._shares)[0]
        policy = rng.choice(self.past) if kind == PAST and self.past else self._learner_policy
        if kind == PAST and not self.past:
            kind = SELF_PLAY
        learner = Contestant(self._learner_policy, policy=self._learner_policy)
        opponent = Contestant(kind, policy=policy) if kind in POLICIES else Contestant(kind, bot=kind)
        seats = tuple(learner if seat == learner_seat else opponent for seat in range(self._seats))
        learns = tuple(seat == learner_seat or kind == SELF_PLAY for seat in range(self._seats))
        return Matchup(kind, learner_seat, seats, learns)


class Schedule:
    """Game number n of a source is the n-th of all pairings. The outcome that counts is `first`'s.

    Args:
        mirror_seed: seed of mirrored games, the same for all workers and pairings.
    """

    def __init__(self, pairings: Sequence[Pairing], mirror_seed: str) -> None:
        self._games = [(index, pairing, n) for index, pairing in enumerate(pairings) for n in range(pairing.battles)]
        self._mirror_seed = mirror_seed
        self.bots = {seat.bot for pairing in pairings for seat in (pairing.first, pairing.second) if seat.bot}

    def __len__(self) -> int:
        return len(self._games)

    def seed_of(self, number: int) -> str | None:
        """The seed of everything drawn for a mirrored game; None for one with a seed of its own."""
        _, pairing, played = self._games[number]
        mirror = pairing.mirror(played)
        return None if mirror is None else f"{self._mirror_seed}/mirrored/{mirror}"

    def matchup(self, number: int) -> Matchup:
        """Who plays game `number`."""
        index, pairing, played = self._games[number]
        first_seat, mirror = pairing.first_seat(played), pairing.mirror(played)
        seats = pairing.seated(played)
        return Matchup(
            result_key(index, first_seat), first_seat, seats, (False,) * len(seats),
            None if mirror is None else (index, mirror),
        )  # fmt: skip
