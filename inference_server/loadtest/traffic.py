"""What the load says: rows of sessions that never end, with observations that any network of the game can take."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.common.client.columns import Columns
from simul.common.protocol.messages import START
from simul.common.protocol.specs import GameSpec

_EPISODE, _STEP = 2, 3  # columns of `keys`


class Seats:
    """The next row of each of `envs` sessions, as columns. Observations and masks are drawn once, and sent again."""

    def __init__(self, spec: GameSpec, envs: int, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self._next = Columns.empty(envs, spec)
        self._next.keys[:, 0] = np.arange(envs)
        self._next.flags[:] = START
        self._next.observation[:] = observations(spec, envs, draw)
        self._next.mask[:] = masks(spec, envs, draw)

    def rows(self, seats: NDArray[np.int64]) -> Columns:
        """Rows of `seats`, int64 [N], for one message. All seats in order cost no copy."""
        if len(seats) == len(self._next.flags) and bool((seats[:-1] < seats[1:]).all()):
            return self._next
        return Columns(**{name: column[seats] for name, column in vars(self._next).items()})

    def advance(self, seats: NDArray[np.int64]) -> None:
        """Go one step on: their rows were sent."""
        self._next.keys[seats, _STEP] += 1
        self._next.flags[seats] = 0

    def restart(self, seats: NDArray[np.int64]) -> None:
        """Begin a new episode: their rows were refused."""
        self._next.keys[seats, _EPISODE] += 1
        self._next.keys[seats, _STEP] = 0
        self._next.flags[seats] = START


def observations(spec: GameSpec, rows: int, draw: np.random.Generator) -> NDArray[np.floating]:
    """Wire dtype [rows, D], uniform in what each slice of the layout allows; ids are whole numbers."""
    values = draw.random((rows, spec.observation_size), np.float32)
    for part in spec.layout:
        place = values[:, part.start : part.start + part.size]
        if part.kind == "id":
            place[:] = draw.integers(0, max(part.vocabulary, 1), place.shape)
        else:
            place *= part.high - part.low
            place += part.low
    return values.astype(spec.dtype())


def masks(spec: GameSpec, rows: int, draw: np.random.Generator) -> NDArray[np.uint8]:
    """uint8 [rows, A], 1 = legal: about half of the actions, one at least."""
    legal = draw.integers(0, 2, (rows, spec.num_actions), np.uint8)
    legal[np.arange(rows), draw.integers(0, spec.num_actions, rows)] = 1
    return legal
