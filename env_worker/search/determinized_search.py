"""The search of one action in a game of hidden information: rollouts of the policy in drawn worlds.

    search = DeterminizedSearch(game, seat, worlds=100, candidates=4, draw=draw)
    while (rows := search.rows(most)) is not None:
        search.take(rows, evaluation)       # of the rows, by the network
    search.action

A world is the game with everything that the seat does not know drawn anew (`TurnGame.determinize`); all candidates meet
the same worlds and the same chance events. There the other seats take the network's most probable actions, each by what
it knows in that world, until the seat acts again: the network's value of that position, or the returns of a game that
is over, is what the candidate is worth there. Where the game itself counts what actions are worth
(`TurnGame.action_values`), nothing is drawn.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.client.evaluation import Evaluation
from simul.common.errors import EnvError
from simul.common.protocol.masks import pack_masks
from simul.common.runtime.intervals import Z_95
from simul.env_worker.games.base.turn_game import CHANCE, TurnGame
from simul.env_worker.search.evaluators import LeafEvaluator

ROOT = -1  # place of the position itself


class Rows(NamedTuple):
    """Rows for the network.

    Attributes:
        places: of the positions, in the search.
        actions: legal ones of each.
        observation: wire dtype [N, D]; mask: uint8 [N, ceil(A / 8)], bits.
    """

    places: list[int]
    actions: list[NDArray[np.intp]]
    observation: NDArray[Any]
    mask: NDArray[np.uint8]


class DeterminizedSearch:
    """One search.

    Args:
        game: unchanged. seat: that acts.
        worlds: drawn ones. candidates: so many of the actions that the policy likes best are tried in each.
        draw: of the worlds and their chance events.
        points_of_value: returns of the game that a value of 1 stands for.

    Attributes:
        actions, scores: the candidates, best first by the policy, and what each is worth, a mean over the worlds.
            Complete when `rows` is None.
        worlds: that they are means over; 0 where the game counts them, or leaves no choice.
    """

    def __init__(
        self, game: TurnGame, seat: int, *, worlds: int, candidates: int, draw: random.Random,
        points_of_value: float = 1.0,
    ) -> None:  # fmt: skip
        self._game, self._seat = game, seat
        self._candidates = candidates
        self._draw = draw
        self._points_of_value = points_of_value
        self._earned = float(game.learned_returns()[seat])
        self._games: dict[int, TurnGame] = {ROOT: game}  # that are played on, by place
        self._waiting: deque[int] = deque([ROOT])  # places of positions that the network was not asked about yet
        self._chance: dict[int, random.Random] = {}  # by place; equal for all candidates of a world
        self.actions: NDArray[np.intp] = game.legal_actions(seat)
        known = np.zeros(1) if len(self.actions) == 1 else game.action_values(seat, draw)
        self.worlds = worlds if known is None else 0
        self._worth: NDArray[np.float64] = np.zeros((0, 1)) if known is None else known[:, None]  # [candidates, worlds]
        if known is not None:
            self._waiting.clear()

    @property
    def scores(self) -> NDArray[np.float64]:
        """float64 [candidates]."""
        return self._worth.mean(axis=1)

    @property
    def margins(self) -> NDArray[np.float64] | None:
        """float64 [candidates]: half of the 95% intervals of `scores`; None with less than two worlds.

        All candidates meet the same worlds, so their differences are surer than these say.
        """
        return None if self.worlds < 2 else Z_95 * self._worth.std(axis=1, ddof=1) / np.sqrt(self.worlds)

    @property
    def action(self) -> int:
        """The best candidate."""
        return int(self.actions[self.scores.argmax()])

    def rows(self, most: int) -> Rows | None:
        """At most so many rows that the network is asked about next; None: the search is over.

        Raises EnvError where several seats act at once.
        """
        if not self._waiting:
            return None
        places = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        games = [self._games[place] for place in places]
        seats = [_acting_seat(game) for game in games]
        actions = [game.legal_actions(seat) for game, seat in zip(games, seats)]
        mask = np.zeros((len(games), self._game.spec.num_actions), np.uint8)
        for row, legal in zip(mask, actions):
            row[legal] = 1
        observation = np.stack([game.observation(seat) for game, seat in zip(games, seats)])
        return Rows(places, actions, observation, pack_masks(mask))

    def take(self, rows: Rows, evaluation: Evaluation) -> None:
        """The answer to `rows`, of which none was refused."""
        priors = np.split(evaluation.legal_priors, evaluation.first[1:-1])
        if rows.places == [ROOT]:
            self._draw_worlds(priors[0])
            return
        for place, actions, prior, value in zip(rows.places, rows.actions, priors, evaluation.value.tolist()):
            seat = _acting_seat(self._games[place])
            if seat == self._seat:
                self._end(place, value * self._points_of_value)
            else:
                self._games[place].apply({seat: int(actions[prior.argmax()])})
                self._play_on(place)

    def run(self, evaluator: LeafEvaluator, most_rows: int) -> None:
        """Search to the end, with requests of at most so many rows. Raises RuntimeError where a row is refused."""
        while (rows := self.rows(most_rows)) is not None:
            number = evaluator.submit(rows.observation, rows.mask, self._game.spec.num_actions)
            answers: list[Evaluation] = []
            while not answers:
                answers = [answer for answer in evaluator.poll() if answer.id == number]
            if refused := answers[0].errors:
                raise RuntimeError(f"the evaluation was refused: {': '.join(next(iter(refused.values())))}")
            self.take(rows, answers[0])

    def _draw_worlds(self, prior: NDArray[np.float32]) -> None:
        self.actions = self.actions[np.argsort(-prior, kind="stable")[: self._candidates]]
        self._worth = np.zeros((len(self.actions), self.worlds))
        for number in range(self.worlds):
            world, seed = self._game.determinize(self._seat, self._draw), self._draw.getrandbits(64)
            for candidate, action in enumerate(self.actions.tolist()):
                place = candidate * self.worlds + number
                self._games[place] = world.clone()
                self._chance[place] = random.Random(seed)
                self._games[place].apply({self._seat: action})
                self._play_on(place)

    def _play_on(self, place: int) -> None:
        """Chance draws its events; then the network is asked, or the game is over."""
        game = self._games[place]
        while (acting := game.acting()) and acting[0] == CHANCE:
            game.apply({CHANCE: game.draw_chance(self._chance[place])})
        if acting:
            self._waiting.append(place)
        else:
            self._end(place, 0.0)

    def _end(self, place: int, to_come: float) -> None:
        returns = self._games.pop(place).learned_returns()
        self._worth.flat[place] = float(returns[self._seat]) - self._earned + to_come


def _acting_seat(game: TurnGame) -> int:
    acting = game.acting()
    if len(acting) != 1:
        raise EnvError(f"{game.spec.name}: seats {list(acting)} act at once; search.worlds needs one at a time")
    return acting[0]
