"""What a searched game leaves to the learner: its positions, and at its end what they were worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.masks import pack_masks
from simul.common.protocol.samples import NO_ACTIONS, NO_ENDING, NO_PROBABILITIES, Sample
from simul.env_worker.games.base.checks import check_ending
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.search.search import SearchResult


class _Position(NamedTuple):
    """A sample without its outcome."""

    seat: int
    observation: NDArray[Any]
    mask: NDArray[np.uint8]
    policy_version: int
    game: TurnGame | None  # as it was, where its end has something to tell of it
    symmetry: int
    actions: NDArray[np.int32] = NO_ACTIONS
    probabilities: NDArray[np.float32] = NO_PROBABILITIES


class _Move(NamedTuple):
    """The positions of one move, the acting seat's first."""

    positions: list[_Position]
    values: NDArray[np.float64] | None  # [seats], the search's own; None: one action was legal


class GameRecord:
    """The positions of one game in which recorded seats acted.

    With more than two seats, each also gives a value-only sample of every other seat, because the search asks for the
    value of all.

    Args:
        symmetries: turn each sample by a symmetry of the game, drawn from `draw`.
        td_lambda: the outcome G of move t that is learned is the lambda-return of the values v that the searches found
            (Sutton and Barto 2018, eq. 12.2): G(t) = (1 - lambda) v(t) + lambda G(t + 1), behind the last move the
            game's outcome. 1: that alone.
    """

    def __init__(self, draw: np.random.Generator, symmetries: bool, td_lambda: float = 1.0) -> None:
        self._draw = draw
        self._symmetries = symmetries
        self._lambda = td_lambda
        self._moves: list[_Move] = []

    def add(self, game: TurnGame, seat: int, result: SearchResult, policy_version: int) -> None:
        """The position of `game`, in which `seat` acts, before its move."""
        spec = game.spec
        symmetry = int(self._draw.integers(game.symmetries)) if self._symmetries and game.symmetries > 1 else 0
        mask, actions = game.mask(seat), result.actions
        if symmetry:
            turned = game.turn_actions(symmetry)
            mask, actions = np.zeros_like(mask), turned[actions]
            mask[turned[game.legal_actions(seat)]] = 1
        kept = game.clone() if any(spec.ending_sizes) else None

        def position(of: int, allowed: NDArray[np.uint8], *target: NDArray[Any]) -> _Position:
            seen = _observed(game, of, symmetry)
            return _Position(of, seen, pack_masks(allowed), policy_version, kept, symmetry, *target)

        positions = [position(seat, mask, actions.astype(np.int32), result.policy)]
        if spec.seats > 2:
            none = np.zeros(spec.num_actions, np.uint8)
            none[0] = 1  # as the search asks
            positions += [position(other, none) for other in range(spec.seats) if other != seat]
        self._moves.append(_Move(positions, result.value))

    def samples(self, end: TurnGame, outcome: Sequence[float]) -> list[Sample]:
        """The samples of a game that ended, as `end` shows, with `outcome` [seats]."""
        worth = np.asarray(outcome, np.float64)
        backward: list[list[Sample]] = []
        for positions, values in reversed(self._moves):
            if values is not None:
                worth = (1 - self._lambda) * values + self._lambda * worth
            backward.append([_sample(position, end, float(worth[position.seat])) for position in positions])
        return [sample for samples in reversed(backward) for sample in samples]


def _sample(position: _Position, end: TurnGame, outcome: float) -> Sample:
    return Sample(
        position.observation, position.mask, outcome, position.policy_version, position.actions,
        position.probabilities, _ending(position, end),
    )  # fmt: skip


def _ending(position: _Position, end: TurnGame) -> NDArray[np.uint8]:
    """What `end` tells of a position, turned as its observation was."""
    if position.game is None:
        return NO_ENDING
    ending = position.game.ending(position.seat, end)
    turned = end.turn_ending(ending, position.symmetry) if position.symmetry else ending
    return check_ending(turned, end.spec, position.seat)


def _observed(game: TurnGame, seat: int, symmetry: int) -> NDArray[Any]:
    observation = game.observation(seat)
    return game.turn_observation(observation, symmetry) if symmetry else observation
