"""A client's observations in memory that a server on the same machine granted in WELCOME (docs/protocol.md, section 7).

A block belongs to a STEP message until all of its rows are answered: until then the server may read it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.messages import SharedMemory
from simul.common.protocol.shared_memory import ALIGNMENT, map_memory
from simul.common.protocol.specs import GameSpec

SMALL_BYTES = 4096  # below this, a frame of the message is as cheap


class ObservationBlock(NamedTuple):
    """Room for observations, wire dtype [N, D], at `offset` bytes. Not initialised: contains old observations."""

    offset: int
    observation: NDArray[Any]


class _UsedBlock(NamedTuple):
    number: int
    start: int
    stop: int


class ObservationMemory:
    """Blocks in the memory that a server granted. Not thread-safe."""

    def __init__(self, grant: SharedMemory) -> None:
        """Raises OSError or ValueError where the memory cannot be opened, see `open_observation_memory`."""
        self.grant = grant
        self._memory = map_memory(grant, writable=True)
        self._taken: list[_UsedBlock] = []  # by start

    def allocate(self, number: int, rows: int, spec: GameSpec, owed: Container[int]) -> ObservationBlock | None:
        """A block for the observations of STEP message `number`; blocks of messages not in `owed` are freed first.

        None where there is no room, or where the observations are smaller than SMALL_BYTES.
        """
        count = rows * spec.observation_size
        size = count * spec.dtype().itemsize
        if size < SMALL_BYTES:
            return None
        self._taken = [taken for taken in self._taken if taken.number in owed]
        start, place = ALIGNMENT, 0
        for taken in self._taken:
            if start + size <= taken.start:
                break
            start, place = taken.stop, place + 1
        if start + size > self.grant.size:
            return None
        self._taken.insert(place, _UsedBlock(number, start, start + -(-size // ALIGNMENT) * ALIGNMENT))
        flat = np.frombuffer(self._memory, spec.dtype(), count, start)
        return ObservationBlock(start, flat.reshape(rows, spec.observation_size))


def open_observation_memory(grant: SharedMemory | None) -> ObservationMemory | None:
    """The memory that a server granted; None without a grant, or if it cannot be opened here."""
    try:
        return None if grant is None else ObservationMemory(grant)
    except (OSError, ValueError):
        return None
