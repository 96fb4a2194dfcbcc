"""Symmetries of the game as permutations of observations and actions, for augmentation.

The views already turn the boards of all colours into each other. In the view of a colour, Duo has one symmetry more,
the reflection in the main diagonal, which both starts lie on. Classic has none: a reflection exchanges the colours
that place before and after the own one.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from simul.env_worker.games.blokus.board import Variant, corners, placement_number
from simul.env_worker.games.blokus.observation import game_spec
from simul.env_worker.games.blokus.pieces import ORIENTATIONS


@cache
def transposed_actions(variant: Variant) -> NDArray[np.intp]:
    """[A]: the action that each becomes when the view is reflected in its main diagonal. Its own inverse."""
    mapped = [
        placement_number(variant, [(left + column, top + row) for row, column in ORIENTATIONS[index].shape])
        for index, top, left in corners(variant).tolist()
    ]
    return np.array([*mapped, variant.placements], np.intp)


@cache
def transposed_observation(variant: Variant) -> NDArray[np.intp]:
    """[D]: `observation[these]` is the observation of the reflected position."""
    spec = game_spec(variant)
    return _transposed(spec.observation_size, spec.observation_shape[0], variant.side)


@cache
def transposed_ending(variant: Variant) -> NDArray[np.intp]:
    """[E]: likewise of what the end tells of a position."""
    spec = game_spec(variant)
    return _transposed(sum(spec.ending_sizes), spec.ending_planes, variant.side)


def _transposed(size: int, planes: int, side: int) -> NDArray[np.intp]:
    """[size]: of numbers that begin with planes of the board, where each is found when those are transposed."""
    places = np.arange(size)
    board = places[: planes * side * side].reshape(planes, side, side)
    places[: board.size] = board.transpose(0, 2, 1).ravel()
    return places
