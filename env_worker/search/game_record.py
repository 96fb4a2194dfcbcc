"""What a searched game leaves to the learner: its positions, and at its end their outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.masks import pack_masks
from simul.common.protocol.samples import NO_ACTIONS, NO_PROBABILITIES, Sample
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.search.search import SearchResult


class _Position(NamedTuple):
    """A sample without its outcome."""

    seat: int
    observation: NDArray[Any]
    mask: NDArray[np.uint8]
    policy_version: int
    actions: NDArray[np.int32] = NO_ACTIONS
    probabilities: NDArray[np.float32] = NO_PROBABILITIES


class GameRecord:
    """The positions of one game in which recorded seats acted.

    With more than two seats, each also gives a value-only sample of every other seat, because the search asks for the
    value of all.

    Args:
        symmetries: turn each sample by a symmetry of the game, drawn from `draw`.
    """

    def __init__(self, draw: np.random.Generator, symmetries: bool) -> None:
        self._draw = draw
        self._symmetries = symmetries
        self._positions: list[_Position] = []

    def add(self, game: TurnGame, seat: int, result: SearchResult, policy_version: int) -> None:
        """The position of `game`, in which `seat` acts, before its move."""
        spec = game.spec
        symmetry = int(self._draw.integers(game.symmetries)) if self._symmetries and game.symmetries > 1 else 0
        mask, actions = game.mask(seat), result.actions
        if symmetry:
            turned = game.turn_actions(symmetry)
            mask, actions = np.zeros_like(mask), turned[actions]
            mask[turned[game.legal_actions(seat)]] = 1
        self._positions.append(
            _Position(
                seat, _observed(game, seat, symmetry), pack_masks(mask), policy_version, actions.astype(np.int32),
                result.policy,
            )
        )  # fmt: skip
        if spec.seats > 2:
            none = np.zeros(spec.num_actions, np.uint8)
            none[0] = 1  # as the search asks
            self._positions += [
                _Position(other, _observed(game, other, symmetry), pack_masks(none), policy_version)
                for other in range(spec.seats)
                if other != seat
            ]

    def samples(self, outcome: Sequence[float]) -> list[Sample]:
        """The samples of a game that ended with `outcome` [seats]."""
        return [
            Sample(
                position.observation, position.mask, float(outcome[position.seat]), position.policy_version,
                position.actions, position.probabilities,
            )
            for position in self._positions
        ]  # fmt: skip


def _observed(game: TurnGame, seat: int, symmetry: int) -> NDArray[Any]:
    observation = game.observation(seat)
    return game.turn_observation(observation, symmetry) if symmetry else observation
