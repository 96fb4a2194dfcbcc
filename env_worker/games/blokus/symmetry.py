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
    planes, height, width = spec.observation_shape
    places = np.arange(spec.observation_size)
    board = places[: planes * height * width].reshape(planes, height, width)
    places[: board.size] = board.transpose(0, 2, 1).ravel()
    return places
