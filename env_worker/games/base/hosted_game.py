"""One TurnGame in flight: its seats, the decisions they are asked for, and their ends."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import EnvError
from simul.common.protocol.decisions import Decision
from simul.common.protocol.messages import ABORTED, RECORD, TERMINATED, TRUNCATED
from simul.env_worker.games.base.checks import MOST_REWARD, check_label, check_legal, check_reward, no_legal_action
from simul.env_worker.games.base.matchmaking import Matchup
from simul.env_worker.games.base.replays import Turn, moves_of
from simul.env_worker.games.base.standings import outcome
from simul.env_worker.games.base.turn_game import CHANCE, Player, TurnGame

Results = tuple[list[float], dict[str, list[float]]]  # returns [seats]; the game's own figures, [seats] each


class PlayerError(Exception):
    """A scripted player raised, which is the cause. Caught by the source: the game is aborted."""


class SeatSession:
    """A seat that a policy plays.

    Attributes:
        step: of the current decision, -1 before the first.
        mask: uint8 [A] of the decision that waits for its action; None: none waits.
    """

    def __init__(self, env: int, seat: int, episode: int, policy: str, flags: int, reward_scale: float) -> None:
        self.env, self.seat, self.episode = env, seat, episode
        self.policy = policy
        self.step = -1
        self.mask: NDArray[np.uint8] | None = None
        self._flags = flags
        self._reward_scale = reward_scale
        self._paid = 0.0  # rewards that went out already, unscaled

    def decide(self, game: TurnGame) -> Decision:
        """What the seat is asked now."""
        mask = game.mask(self.seat)
        check_legal(mask, game.spec.name, self.seat)
        observation, reward, label = _observed(game, self.seat), self._earned(game), self._label(game)
        self.step += 1  # behind what may raise: a session begins with the row that is sent
        self.mask = mask
        return Decision(
            self.env, self.seat, self.episode, self.step, flags=self._flags if self.step == 0 else 0, reward=reward,
            observation=observation, mask=mask, policy=self.policy, label=label,
        )  # fmt: skip

    def end(self, game: TurnGame, truncated: bool) -> Decision | None:
        """The end of a game that is over; None where the seat never decided anything, and so has no session."""
        if self.step < 0:
            return None
        kind, observation = (TRUNCATED, _observed(game, self.seat)) if truncated else (TERMINATED, None)
        return Decision(
            self.env, self.seat, self.episode, self.step + 1, kind=kind, reward=self._earned(game),
            observation=observation, label=self._label(game),
            outcome=None if truncated else outcome(self.seat, game.returns()),
        )  # fmt: skip

    def aborted(self) -> Decision | None:
        """The end of an aborted game."""
        return Decision(self.env, self.seat, self.episode, self.step + 1, kind=ABORTED) if self.step >= 0 else None

    def _label(self, game: TurnGame) -> tuple[int, ...]:
        """What the opponents did at the last step; only of what is learned from."""
        if not game.spec.opponent_labels or self.step < 0 or not self._flags & RECORD:
            return ()
        return check_label(game.opponent_label(self.seat), game.spec, self.seat)

    def _earned(self, game: TurnGame) -> float:
        total = float(game.learned_returns()[self.seat])
        reward, self._paid = total - self._paid, total
        check_reward(reward, game.spec.name, self.seat, self._reward_scale)
        return reward * self._reward_scale


class BotSeat:
    """A seat that a scripted player plays; `draw`: of everything it draws."""

    def __init__(self, seat: int, player: Player, draw: random.Random) -> None:
        self.seat = seat
        self._player = player
        self._draw = draw

    def choose(self, game: TurnGame) -> int:
        """Its action. Raises PlayerError, and EnvError where the game leaves it none."""
        try:
            return self._player.choose(game, self.seat, self._draw)
        except Exception as error:
            if not len(game.legal_actions(self.seat)):
                raise EnvError(no_legal_action(game.spec.name, self.seat)) from None
            raise PlayerError from error


class HostedGame:
    """A game and its seats. Exceptions of the game pass through.

    Args:
        seed: that the game was reset with.
        chance: draws the game's chance events.
        recorded: keep the moves. remembered: keep `taken`, which `play_opening` needs.

    Attributes:
        number: of the game, from 0; episode: of its env.
        turns: the moves so far; None where they are not kept.
        taken: the actions so far, chance's included, where `remembered`.
        encode_sec: seconds spent on what policies are shown.
    """

    def __init__(
        self, game: TurnGame, number: int, env: int, episode: int, matchup: Matchup,
        seats: Sequence[SeatSession | BotSeat], seed: int, chance: random.Random, recorded: bool = False,
        remembered: bool = False,
    ) -> None:  # fmt: skip
        self.game = game
        self.seed = seed
        self.turns: list[Turn] | None = [] if recorded else None
        self.taken: list[Mapping[int, int]] = []
        self._remembered = remembered
        self.number, self.env, self.episode = number, env, episode
        self.matchup = matchup
        self.seats = seats
        self.open = 0  # decisions that wait for their actions
        self.encode_sec = 0.0
        self._chance = chance
        self._actions: dict[int, int] = {}

    @property
    def sessions(self) -> list[SeatSession]:
        """Seats that policies play."""
        return [seat for seat in self.seats if isinstance(seat, SeatSession)]

    @property
    def step(self) -> int:
        """The latest step of any seat, for messages; -1 before the first."""
        return max((seat.step for seat in self.sessions), default=-1)

    def play_opening(self, plies: int, draw: random.Random) -> None:
        """Take at most so many random turns: only such as leave something to decide to every seat.

        Random turns go on behind them, to see whether the game ends soon, and are taken back.
        """
        if not plies:
            return
        before: list[int] = []  # turns taken before each ply
        while len(before) < plies + max(plies, 2 * len(self.seats)) and (acting := self._after_chance()):
            before.append(len(self.taken))
            self._apply({seat: draw.choice(self._legal(seat)) for seat in acting}, drawn=True)
        acted = [set(self.taken[turn]) for turn in before]
        kept = min(plies, len(before) - 1)
        while kept > 0 and not set().union(*acted) <= set().union(*acted[kept:]):
            kept -= 1
        if before:
            self._return_to(before[kept])

    def advance(self, decisions: list[Decision], until: float) -> bool:
        """Play on until policies must act (their decisions are added), or the game is over: then True.

        False: scripted players have used the time up to `until` (monotonic), and the game goes on later.
        """
        game = self.game
        while acting := self._after_chance():
            for number in acting:
                seat = self.seats[number]
                if isinstance(seat, BotSeat):
                    self._actions[number] = seat.choose(game)
                else:
                    begin = time.perf_counter()
                    decisions.append(seat.decide(game))
                    self.encode_sec += time.perf_counter() - begin
                    self.open += 1
            if self.open:
                return True
            self._apply_chosen()
            if time.monotonic() >= until:
                return False
        return True

    def results(self) -> Results:
        """Returns and figures of a game that is over. Raises EnvError where they are not a number for each seat."""
        returns = [float(each) for each in self.game.returns()]
        figures = {name: [float(each) for each in values] for name, values in self.game.figures().items()}
        for name, values in {"returns": returns, **figures}.items():
            if len(values) != len(self.seats) or not (np.abs(values) <= MOST_REWARD).all():
                raise EnvError(
                    f"{name} are {values}; expected a number of at most {MOST_REWARD:.2g} for each of "
                    f"{len(self.seats)} seats"
                )
        return returns, figures

    def answers(self, seat: int, episode: int, step: int) -> SeatSession | None:
        """The seat whose decision waits for this action; None where it is an old one."""
        found = self.seats[seat]
        if not isinstance(found, SeatSession) or episode != self.episode or found.mask is None or found.step != step:
            return None
        return found

    def take_action(self, seat: SeatSession, action: int) -> bool:
        """The action of a decision, a legal one. True: it was the last one that the game waited for."""
        seat.mask = None
        self._actions[seat.seat] = action
        self.open -= 1
        if self.open:
            return False
        self._apply_chosen()
        return True

    def _apply_chosen(self) -> None:
        actions, self._actions = self._actions, {}
        self._apply(actions)

    def _after_chance(self) -> Sequence[int]:
        """The seats that act when chance has drawn its events."""
        while (acting := self.game.acting()) and acting[0] == CHANCE:
            self._apply({CHANCE: self.game.draw_chance(self._chance)})
        return acting

    def _legal(self, seat: int) -> list[int]:
        actions: list[int] = self.game.legal_actions(seat).tolist()
        if not actions:
            raise EnvError(no_legal_action(self.game.spec.name, seat))
        return actions

    def _return_to(self, turns: int) -> None:
        """Take back all but the first `turns` turns."""
        kept = self.taken[:turns]
        self.game.reset(self.seed)
        for actions in kept:
            self.game.apply(actions)
        self.taken = kept
        if self.turns is not None:
            del self.turns[turns:]

    def _apply(self, actions: Mapping[int, int], *, drawn: bool = False) -> None:
        if self.turns is not None:
            self.turns.append(moves_of(self.game, actions, drawn=drawn))
        self.game.apply(actions)
        if self._remembered:
            self.taken.append(actions)


def _observed(game: TurnGame, seat: int) -> NDArray[np.generic]:
    """Wire dtype [D]. Raises EnvError where the game breaks its own spec."""
    observation, spec = game.observation(seat), game.spec
    if observation.shape != (spec.observation_size,) or observation.dtype != spec.dtype():
        raise EnvError(
            f"an observation is {observation.dtype} {list(observation.shape)}; the spec declares "
            f"{spec.observation_dtype} [{spec.observation_size}]"
        )
    return observation
