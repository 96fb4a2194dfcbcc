"""What a policy thinks of a position: its action, its best actions with their probabilities, and its value."""

from __future__ import annotations

import itertools
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.client.evaluation import NO_SESSION
from simul.common.config.search import SearchConfig
from simul.common.protocol.decisions import Decision, start_flags
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.replays import RecordedGame, Turn
from simul.env_worker.games.base.turn_game import CHANCE, TurnGame
from simul.env_worker.terminal.server_line import ServerLine, SessionLostError

MOST_NAMED = 5  # actions


class Advice(NamedTuple):
    """Of the seat that acts.

    Attributes:
        action: what the policy plays.
        best: (action, probability), the most probable first; of a search: its improved policy, or the visits.
        value: what the seat expects, in the units that were learned from; None: unknown.
        in_points: `best` has what each action is worth, in points of the game, in place of its probability.
        margins: of `best` in points, half of the 95% intervals; empty where it is no mean over drawn worlds.
        worlds: that `best` in points is a mean over.
    """

    action: int
    best: list[tuple[int, float]]
    value: float | None
    in_points: bool = False
    margins: Sequence[float] = ()
    worlds: int = 0

    def text(self, game: TurnGame, seat: int) -> str:
        """A line for each of the best actions, and the value, or what the points are."""
        lines = [
            f"{self._worth(place)}  {game.action_name(seat, action)}"
            for place, (action, _) in enumerate(self.best[:MOST_NAMED])
        ]
        if self.value is not None:
            lines.append(f"value {self.value:+.3f}")
        if self.in_points:
            noun = "world" if self.worlds == 1 else "worlds"
            drawn = f"mean over {self.worlds} drawn {noun}" + " [95%]" * bool(self.margins)
            lines.append(f"points, {drawn if self.worlds else 'counted by the game'}")
        return "\n".join(lines)

    def _worth(self, place: int) -> str:
        """Of the action `best[place]`."""
        found = self.best[place][1]
        if not self.in_points:
            return f"{found:6.1%}"
        margin = self.margins[place] if self.margins else None
        return f"{found:+8.2f}" + ("" if margin is None else f" [{found - margin:+.2f}, {found + margin:+.2f}]")


class Advisor(ABC):
    """A policy, asked about one seat.

    Attributes:
        follows: it keeps a state along the game, so it is asked at every decision, whether or not a hint is wanted.
    """

    follows: bool = False
    _turns: list[Turn] | None = None
    _advice: Advice

    def advise(self, played: RecordedGame) -> Advice:
        """Of the seat that acts. Asked again about the same position, the same answer. Raises InferenceError."""
        if self._turns != played.turns:
            self._advice = self._find(played)
            self._turns = list(played.turns)
        return self._advice

    @abstractmethod
    def _find(self, played: RecordedGame) -> Advice:
        """Of a position that it was not asked about last."""


class _Position(NamedTuple):
    """A decision of the seat: after how many turns, and what the policy was shown."""

    turn: int
    observation: NDArray[Any]
    mask: NDArray[np.uint8]


class PolicySession(Advisor):
    """A policy with a session on the server, which keeps its recurrent state along the game.

    Each decision is evaluated with the state before it, and then stepped. After moves were taken back, or where the
    server has dropped the session, a new one is stepped through the decisions so far.

    Args:
        greedy: take the most probable action.
    """

    follows = True

    def __init__(self, line: ServerLine, policy: str, env: int, seat: int, *, greedy: bool) -> None:
        self._line = line
        self._policy = policy
        self._env, self._seat = env, seat
        self._greedy = greedy
        self._episodes = itertools.count()
        self._episode = next(self._episodes)
        self._step = 0
        self._positions: list[_Position] = []  # that the session was stepped through

    def _find(self, played: RecordedGame) -> Advice:
        common = _common_length(self._turns or [], played.turns)
        before = [each for each in self._positions if each.turn <= common and each.turn < len(played.turns)]
        game = played.game
        position = _Position(len(played.turns), game.observation(self._seat), game.mask(self._seat))
        try:
            if len(before) < len(self._positions):
                self._start_again(before)
            advice = self._decide(position)
        except SessionLostError:
            self._start_again(before)
            advice = self._decide(position)
        self._positions = [*before, position]
        return advice

    def _start_again(self, positions: list[_Position]) -> None:
        self._episode, self._step = next(self._episodes), 0
        for position in positions:
            self._act(position)

    def _decide(self, position: _Position) -> Advice:
        session = (self._env, self._seat, self._episode) if self._step else NO_SESSION
        evaluation = self._line.evaluate(position.observation, position.mask.astype(bool), self._policy, session)
        priors = evaluation.priors[0]
        order = np.argsort(-priors, kind="stable")[: int((priors > 0).sum())]
        best = [(int(action), float(priors[action])) for action in order]
        return Advice(self._act(position), best, float(evaluation.value[0]))

    def _act(self, position: _Position) -> int:
        flags = start_flags(False, self._greedy) if self._step == 0 else 0
        decision = Decision(
            self._env, self._seat, self._episode, self._step, flags=flags, observation=position.observation,
            mask=position.mask, policy=self._policy,
        )  # fmt: skip
        action = self._line.act(decision).action
        self._step += 1
        return action


class PolicySearch(Advisor):
    """A policy that was trained with search chooses by search.

    Args:
        greedy: without noise and temperature.
        seed: of all that is drawn.
    """

    def __init__(
        self, line: ServerLine, policy: str, config: SearchConfig, spec: GameSpec, *, greedy: bool, seed: int
    ) -> None:
        from simul.env_worker.search.evaluation_cache import EvaluationCache  # compiles; other policies do without
        from simul.env_worker.search.search import Search

        self._config = config
        self._greedy = greedy
        self._evaluator = line.evaluator(policy)
        self._search = Search(config, spec, np.random.default_rng(seed), EvaluationCache(config.cache_positions))

    def _find(self, played: RecordedGame) -> Advice:
        from simul.env_worker.search.batched_search import run_searches

        seat = played.game.acting()[0]
        self._search.begin(played.game, full=True, move=len(played.turns), noise=not self._greedy)
        run_searches([self._search], self._evaluator, self._config.symmetries)
        result = self._search.result()
        order = np.argsort(-result.policy, kind="stable")
        best = [(int(result.actions[at]), float(result.policy[at])) for at in order]
        value = None if result.value is None else float(result.value[seat])
        return Advice(result.action, best or [(result.action, 1.0)], value)


class PolicyRollouts(Advisor):
    """A policy without a memory chooses by search in drawn worlds (`search.worlds`).

    Args:
        config: its `worlds` and `candidates`. points_of_value: see `DeterminizedSearch`.
    """

    def __init__(self, line: ServerLine, policy: str, config: SearchConfig, *, points_of_value: float) -> None:
        self._config = config
        self._points_of_value = points_of_value
        self._evaluator = line.evaluator(policy)
        self._rows_per_message = line.rows_per_message

    def _find(self, played: RecordedGame) -> Advice:
        from simul.env_worker.search.determinized_search import DeterminizedSearch

        seat = played.game.acting()[0]
        search = DeterminizedSearch(
            played.game, seat, worlds=self._config.worlds, candidates=self._config.candidates,
            draw=random.Random(f"{played.seed}/{len(played.turns)}/{seat}"), points_of_value=self._points_of_value,
        )  # fmt: skip
        search.run(self._evaluator, self._rows_per_message)
        if len(search.actions) == 1:
            return Advice(search.action, [(search.action, 1.0)], None)
        order = np.argsort(-search.scores, kind="stable")
        best = list(zip(search.actions[order].tolist(), search.scores[order].tolist()))
        margins = search.margins
        return Advice(
            search.action, best, None, in_points=True, margins=() if margins is None else margins[order].tolist(),
            worlds=search.worlds,
        )  # fmt: skip


def draws_worlds(game: TurnGame, seat: int) -> bool:
    """True where `seat` does not see all of `game`, and its first decision shows that worlds can be drawn."""
    if not game.hidden_information:
        return False
    try:
        tried, draw = game.clone(), random.Random(0)
        while (acting := tried.acting()) and seat not in acting:
            event = {CHANCE: tried.draw_chance(draw)} if acting[0] == CHANCE else {}
            tried.apply(event or {each: int(draw.choice(tried.legal_actions(each))) for each in acting})
        tried.determinize(seat, draw)
    except Exception:  # noqa: BLE001 - a user's game may raise anything, such as where it cannot be copied
        return False
    return True


def _common_length(one: list[Turn], other: list[Turn]) -> int:
    """How many turns at the begin are the same."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in pairs)
