"""A running battle and its seats; who plays whom: drawn from the configured shares, or an evaluation's pairings."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

from simul.common.config.matchups import Contestant, Pairing, result_key
from simul.common.config.schema import OpponentsConfig
from simul.common.protocol.decisions import start_flags
from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle, SeatDoubleBattle
from simul.env_worker.games.pokemon.doubles.seat import DoubleSeat
from simul.env_worker.games.pokemon.encoding.layout import PLAIN, Extras
from simul.env_worker.games.pokemon.opponents.players import SCRIPTED, SeatPlayer, scripted_player
from simul.env_worker.games.pokemon.source.rewards import RewardWeights
from simul.env_worker.games.pokemon.source.seats import HostedSeat, PolicySeat, ReadingSeat, ScriptedSeat

SELF_PLAY, PAST = "self_play", "past"
KINDS = (SELF_PLAY, PAST, *SCRIPTED)


class LiveBattle:
    """`number` counts the source's battles from 0 and identifies the battle to the host.

    Attributes:
        learner_seat: the seat whose outcome counts; it alternates with the number.
        opponent: self_play, past, a scripted player, or an evaluation's pairing: under which the outcome is counted.
        names: of the players at p1 and p2, for a replay.
        mirror: (pairing, number) of the mirrored pair it belongs to; None where it is not mirrored.
    """

    def __init__(
        self, number: int, env: int, episode: int, opponent: str, seats: tuple[PolicySeat | ScriptedSeat, ...]
    ) -> None:
        self.number, self.env, self.episode = number, env, episode
        self.opponent = opponent
        self.learner_seat = number % 2
        self.seats = seats
        self.mirror: tuple[int, int] | None = None
        self.names = ("learner", opponent) if self.learner_seat == 0 else (opponent, "learner")

    @property
    def policy_seats(self) -> list[PolicySeat]:
        return [seat for seat in self.seats if isinstance(seat, PolicySeat)]

    @property
    def encoded(self) -> tuple[bool, bool]:
        """Which seats the host encodes."""
        first, second = self.seats
        return isinstance(first, HostedSeat), isinstance(second, HostedSeat)

    @property
    def turn(self) -> int:
        """The latest turn that any seat knows of."""
        return max(seat.turn for seat in self.seats)


class Matchmaker:
    """Draws an opponent for each battle from the configured shares; equal seeds draw equally."""

    def __init__(
        self,
        opponents: OpponentsConfig,
        weights: RewardWeights,
        *,
        seed: str,
        gen: int,
        record: bool,
        greedy: bool,
        learner_policy: str,
        hosted: bool,
        extras: Extras = PLAIN,
        doubles: bool = False,
    ) -> None:
        self._shares = [getattr(opponents, kind) for kind in KINDS]
        self._weights = weights
        self._seed = seed
        self.tally = weights.tally
        self._gen = gen
        self._record = record
        self._greedy = greedy
        self._learner_policy = learner_policy
        self._hosted = hosted
        self._extras = extras
        self._doubles = doubles
        self._reading = DoubleSeat if doubles else ReadingSeat
        self._battle_class = SeatDoubleBattle if doubles else SeatBattle
        self._players = self._seated([kind for kind in SCRIPTED if getattr(opponents, kind) > 0])
        self.past: list[str] = []

    def set_policies(self, names: Sequence[str]) -> None:
        self.past = sorted(name for name in names if name.startswith("past/"))

    def seed_of(self, number: int) -> str:
        """The seed of everything drawn for battle `number`: teams, dice, seats."""
        return f"{self._seed}/{number}"

    def make(self, number: int, env: int, episode: int, rng: random.Random) -> LiveBattle:
        """A new battle with its seats. Without a past self, a battle against one is self-play."""
        kind = rng.choices(KINDS, self._shares)[0]
        policy = rng.choice(self.past) if kind == PAST and self.past else self._learner_policy
        if kind == PAST and not self.past:
            kind = SELF_PLAY
        learner_seat = number % 2
        seats: list[PolicySeat | ScriptedSeat] = []
        for seat in (0, 1):
            if seat != learner_seat and kind in self._players:
                seats.append(self._scripted_seat(seat, kind, rng))
                continue
            learns = seat == learner_seat or kind == SELF_PLAY
            name = self._learner_policy if learns else policy
            seats.append(self._policy_seat(env, seat, episode, name, learns=learns))
        return LiveBattle(number, env, episode, kind, tuple(seats))

    def _seated(self, kinds: Iterable[str]) -> dict[str, SeatPlayer]:
        return {kind: scripted_player(kind, self._gen, self._doubles) for kind in kinds}

    def _scripted_seat(self, seat: int, kind: str, rng: random.Random) -> ScriptedSeat:
        battle = self._battle_class(f"p{seat + 1}", self._gen)
        return ScriptedSeat(seat, battle, self._players[kind], rng.getrandbits(48))

    def _policy_seat(self, env: int, seat: int, episode: int, policy: str, *, learns: bool) -> PolicySeat:
        flags = start_flags(self._record and learns, self._greedy)
        if self._hosted:
            return HostedSeat(env, seat, episode, policy, flags, self._weights)
        return self._reading(env, seat, episode, self._gen, policy, flags, self._weights, self._extras)


class ScheduledMatchmaker(Matchmaker):
    """Battle number n of the source is the n-th of all pairings. The outcome that counts is `first`'s.

    `mirror_seed`: seed of mirrored battles, the same for all workers and pairings.
    """

    def __init__(self, pairings: Sequence[Pairing], mirror_seed: str, **options: Any) -> None:
        super().__init__(OpponentsConfig(), **options)
        self._mirror_seed = mirror_seed
        self._schedule = [
            (index, pairing, battle) for index, pairing in enumerate(pairings) for battle in range(pairing.battles)
        ]
        bots = {seat.bot for pairing in pairings for seat in (pairing.first, pairing.second) if seat.bot}
        self._players = self._seated(bots)

    def seed_of(self, number: int) -> str:
        _, pairing, played = self._schedule[number]
        mirror = pairing.mirror(played)
        return super().seed_of(number) if mirror is None else f"{self._mirror_seed}/mirrored/{mirror}"

    def make(self, number: int, env: int, episode: int, rng: random.Random) -> LiveBattle:
        """The scheduled battle with its seats."""
        index, pairing, played = self._schedule[number]
        first_seat = pairing.first_seat(played)
        by_seat = (pairing.first, pairing.second) if first_seat == 0 else (pairing.second, pairing.first)
        seats = tuple(self._seat(contestant, env, seat, episode, rng) for seat, contestant in enumerate(by_seat))
        battle = LiveBattle(number, env, episode, result_key(index, first_seat), seats)
        battle.learner_seat = first_seat
        mirror = pairing.mirror(played)
        battle.mirror = None if mirror is None else (index, mirror)
        battle.names = (by_seat[0].label, by_seat[1].label)
        return battle

    def _seat(
        self, contestant: Contestant, env: int, seat: int, episode: int, rng: random.Random
    ) -> PolicySeat | ScriptedSeat:
        if contestant.bot:
            return self._scripted_seat(seat, contestant.bot, rng)
        return self._policy_seat(env, seat, episode, contestant.policy, learns=False)
