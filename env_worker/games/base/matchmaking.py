"""Who plays whom: drawn from the configured shares, or an evaluation's pairings. For any number of seats."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from simul.common.config.game_description import PAST_SELVES, POLICIES
from simul.common.config.matchups import Contestant, Pairing, result_key
from simul.common.config.opponents import is_own
from simul.common.config.schema import Config, OpponentsConfig
from simul.common.protocol.messages import LEARNER_POLICY

SELF_PLAY, PAST, FROZEN = POLICIES
RESULT_DECAY = 0.99  # of the weight of a past self's games with each further one: about the last 100 count
HARD_POWER = 2.0  # `past_by: hard` draws a past self by (1 - win rate against it) to this power


class Matchup(NamedTuple):
    """Who plays in one game.

    Attributes:
        opponent: under which the outcome is counted: one of POLICIES, a scripted player, or a pairing's `result_key`.
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

    @property
    def past_self(self) -> str:
        """The policy that plays as a past self; "" where none does."""
        return next((seat.policy for seat in self.seats if seat.label == PAST), "") if self.opponent == PAST else ""


class PastResults:
    """Results of a worker's own games against past selves, each game worth RESULT_DECAY of the next one.

    `weights` are those of prioritised fictitious self-play (AlphaStar, Vinyals et al. 2019): f(p) = (1 - p)^HARD_POWER.
    """

    def __init__(self) -> None:
        self._games: dict[str, float] = {}
        self._won: dict[str, float] = {}

    def add(self, policy: str, outcome: int | None) -> None:
        """A game against `policy` is over: 1 won, 0 tied, -1 lost, None truncated, which counts as tied."""
        won = ((outcome or 0) + 1) / 2
        self._games[policy] = RESULT_DECAY * self._games.get(policy, 0.0) + 1.0
        self._won[policy] = RESULT_DECAY * self._won.get(policy, 0.0) + won

    def win_rate(self, policy: str) -> float:
        """Decayed, with one game in all that was tied before the first: 0.5 without games, never 0 or 1."""
        return (self._won.get(policy, 0.0) + 0.5) / (self._games.get(policy, 0.0) + 1.0)

    def weights(self, policies: Sequence[str]) -> list[float]:
        """How often each is drawn, beside each other."""
        return [(1.0 - self.win_rate(policy)) ** HARD_POWER for policy in policies]


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
    """Draws the opponents of each game from the configured shares; equal generators and results draw equally.

    Args:
        kinds: opponents that the game has, POLICIES first; those of the user's own are added.
        seats: players of a game.

    Attributes:
        past: policies that are past selves, sorted.
    """

    def __init__(self, opponents: OpponentsConfig, kinds: Sequence[str], seats: int) -> None:
        shares = opponents.shares()
        self._kinds = [*kinds, *(name for name in own_opponents(opponents, ()) if name not in kinds)]
        self._shares = [shares.get(kind, 0.0) for kind in self._kinds]
        self._seats = seats
        self._results = PastResults() if opponents.past_by == "hard" else None
        self.past: list[str] = []

    def set_policies(self, names: Sequence[str]) -> None:
        """The policies that the server offers."""
        self.past = sorted(name for name in names if name.startswith(PAST_SELVES))

    def add_result(self, past_self: str, outcome: int | None) -> None:
        """A game is over, of the learner's seat as for `GameCounters.count_game`; `past_self`: "" where none played."""
        if past_self and self._results is not None:
            self._results.add(past_self, outcome)

    def draw(self, learner_seat: int, rng: random.Random) -> Matchup:
        """One kind of opponent, who plays all other seats. Without a past self, a game against one is self-play."""
        kind = rng.choices(self._kinds, self._shares)[0]
        policy = FROZEN if kind == FROZEN else LEARNER_POLICY
        if kind == PAST and self.past:
            policy = self._draw_past(rng)
        if kind == PAST and not self.past:
            kind = SELF_PLAY
        learner = Contestant(LEARNER_POLICY, policy=LEARNER_POLICY)
        opponent = Contestant(kind, policy=policy) if kind in POLICIES else Contestant(kind, bot=kind)
        seats = tuple(learner if seat == learner_seat else opponent for seat in range(self._seats))
        learns = tuple(seat == learner_seat or kind == SELF_PLAY for seat in range(self._seats))
        return Matchup(kind, learner_seat, seats, learns)

    def _draw_past(self, rng: random.Random) -> str:
        if self._results is None:
            return rng.choice(self.past)
        return rng.choices(self.past, self._results.weights(self.past))[0]


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
