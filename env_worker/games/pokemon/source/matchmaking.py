"""A running battle and its seats; who plays whom: drawn from the configured shares, or an evaluation's pairings."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from simul.common.config.game_description import POLICIES
from simul.common.config.matchups import Pairing
from simul.common.config.schema import OpponentsConfig
from simul.common.protocol.decisions import start_flags
from simul.common.protocol.messages import LEARNER_POLICY
from simul.env_worker.games.base.matchmaking import Matchup, OpponentDraw, Schedule
from simul.env_worker.games.pokemon.host.backend import Play
from simul.env_worker.games.pokemon.opponents.player_keeper import PlayerKeeper
from simul.env_worker.games.pokemon.opponents.players import HOST_BOTS, SCRIPTED
from simul.env_worker.games.pokemon.opponents.scripted import ScriptedPlayer
from simul.env_worker.games.pokemon.opponents.stock_battle import StockReader, stock_battle
from simul.env_worker.games.pokemon.source.own_code import OwnCode
from simul.env_worker.games.pokemon.source.own_seat import OwnSeat
from simul.env_worker.games.pokemon.source.rewards import RewardWeights
from simul.env_worker.games.pokemon.source.seats import HostedBotSeat, OwnPlayerSeat, PolicySeat, ScriptedSeat

Seat = PolicySeat | ScriptedSeat | OwnPlayerSeat | HostedBotSeat
KINDS = (*POLICIES, *SCRIPTED)


class LiveBattle:
    """`number` counts the source's battles from 0 and identifies the battle to the backend.

    Attributes:
        learner_seat: the seat whose outcome counts; it alternates with the number.
        opponent: one of POLICIES, a scripted player, or an evaluation's pairing: under which the outcome is counted.
        past_self: see `Matchup`.
        names: of the players at p1 and p2, for a replay.
        mirror: (pairing, number) of the mirrored pair it belongs to; None where it is not mirrored.
        of_learner: which seats play with the learner's teams; in an evaluation, that of the pairing's `first`.
    """

    def __init__(self, number: int, env: int, episode: int, opponent: str, seats: tuple[Seat, ...]) -> None:
        self.number, self.env, self.episode = number, env, episode
        self.opponent = opponent
        self.past_self = ""
        self.learner_seat = number % 2
        self.seats = seats
        self.mirror: tuple[int, int] | None = None
        self.of_learner = (self.learner_seat == 0, self.learner_seat == 1)
        self.names = (LEARNER_POLICY, opponent) if self.learner_seat == 0 else (opponent, LEARNER_POLICY)

    @property
    def policy_seats(self) -> list[PolicySeat]:
        return [seat for seat in self.seats if isinstance(seat, PolicySeat)]

    @property
    def encoded(self) -> tuple[bool, bool]:
        """Which seats the host encodes."""
        first, second = self.seats
        return isinstance(first, PolicySeat), isinstance(second, PolicySeat)

    @property
    def told(self) -> tuple[bool, bool]:
        """Which of the encoded seats are told lines and requests, too."""
        first, second = [isinstance(seat, PolicySeat) and seat.own is not None for seat in self.seats]
        return first, second

    @property
    def played(self) -> tuple[Play | None, Play | None]:
        """Which bots the host plays."""
        first, second = [seat.play if isinstance(seat, HostedBotSeat) else None for seat in self.seats]
        return first, second

    @property
    def turn(self) -> int:
        """The latest turn that any seat knows of."""
        return max(seat.turn for seat in self.seats)


class Matchmaker:
    """Draws an opponent for each battle from the configured shares; equal seeds draw equally.

    `own_players`: by module:Class, where the shares or an evaluation name some.
    `labels`: of each step, see `GameSpec.opponent_labels`.
    """

    def __init__(
        self,
        opponents: OpponentsConfig,
        weights: RewardWeights,
        *,
        seed: str,
        gen: int,
        record: bool,
        greedy: bool,
        doubles: bool = False,
        own: OwnCode | None = None,
        own_players: Mapping[str, PlayerKeeper] | None = None,
        labels: int = 0,
    ) -> None:
        self._labels = labels
        self._draw = OpponentDraw(opponents, KINDS, 2)
        self._weights = weights
        self._seed = seed
        self.tally = weights.tally
        self._gen = gen
        self._record = record
        self._greedy = greedy
        self._doubles = doubles
        self._own = own
        self._own_players = own_players or {}
        self._make_players([kind for kind in SCRIPTED if getattr(opponents, kind) > 0])

    def set_policies(self, names: Sequence[str]) -> None:
        self._draw.set_policies(names)

    def add_result(self, battle: LiveBattle, outcome: int | None) -> None:
        """A battle is over, with the learner's outcome as for `BattlePool.finish`."""
        self._draw.add_result(battle.past_self, outcome)

    def seed_of(self, number: int) -> str:
        """The seed of everything drawn for battle `number`: teams, dice, seats."""
        return f"{self._seed}/{number}"

    def make(self, number: int, env: int, episode: int, rng: random.Random) -> LiveBattle:
        """A new battle with its seats."""
        return self._battle(self._draw.draw(number % 2, rng), number, env, episode, rng)

    def _battle(self, matchup: Matchup, number: int, env: int, episode: int, rng: random.Random) -> LiveBattle:
        seats = tuple(
            self._scripted_seat(seat, contestant.bot, rng)
            if contestant.bot
            else self._policy_seat(env, seat, episode, contestant.policy, learns=matchup.learns[seat], number=number)
            for seat, contestant in enumerate(matchup.seats)
        )
        battle = LiveBattle(number, env, episode, matchup.opponent, seats)
        battle.past_self = matchup.past_self
        first, second = [contestant.policy == LEARNER_POLICY for contestant in matchup.seats]
        battle.of_learner = first, second
        return battle

    def _make_players(self, kinds: Collection[str]) -> None:
        in_worker = [kind for kind in kinds if kind in SCRIPTED and kind not in HOST_BOTS]
        self._players = {kind: ScriptedPlayer(kind, self._doubles) for kind in in_worker}

    def _scripted_seat(self, seat: int, kind: str, rng: random.Random) -> ScriptedSeat | OwnPlayerSeat | HostedBotSeat:
        seed = rng.getrandbits(48)
        if kind in self._own_players:
            return OwnPlayerSeat(seat, self._own_players[kind], seed)
        if kind in HOST_BOTS:
            return HostedBotSeat(seat, (HOST_BOTS[kind], seed))
        return ScriptedSeat(seat, self._stock_battle(seat), self._players[kind], seed)

    def _policy_seat(self, env: int, seat: int, episode: int, policy: str, *, learns: bool, number: int) -> PolicySeat:
        flags = start_flags(self._record and learns, self._greedy)
        own = None
        if self._own is not None:
            own = OwnSeat(
                self._own, seat, self._stock_battle(seat, f"battle-{self._seed.replace('/', '-')}-{2 * number + seat}")
            )
        return PolicySeat(env, seat, episode, policy, flags, self._weights, own, self._labels)

    def _stock_battle(self, seat: int, tag: str = "battle") -> StockReader:
        return stock_battle(f"p{seat + 1}", self._gen, doubles=self._doubles, tag=tag)


class ScheduledMatchmaker(Matchmaker):
    """Battle number n of the source is the n-th of all pairings. The outcome that counts is `first`'s.

    `mirror_seed`: seed of mirrored battles, the same for all workers and pairings.
    """

    def __init__(self, pairings: Sequence[Pairing], mirror_seed: str, **options: Any) -> None:
        super().__init__(OpponentsConfig(), **options)
        self._schedule = Schedule(pairings, mirror_seed)
        self._make_players(self._schedule.bots)

    def seed_of(self, number: int) -> str:
        return self._schedule.seed_of(number) or super().seed_of(number)

    def make(self, number: int, env: int, episode: int, rng: random.Random) -> LiveBattle:
        """The scheduled battle with its seats."""
        matchup = self._schedule.matchup(number)
        battle = self._battle(matchup, number, env, episode, rng)
        battle.learner_seat = matchup.learner_seat
        battle.of_learner = (matchup.learner_seat == 0, matchup.learner_seat == 1)
        battle.mirror = matchup.mirror
        battle.names = (matchup.seats[0].label, matchup.seats[1].label)
        return battle
