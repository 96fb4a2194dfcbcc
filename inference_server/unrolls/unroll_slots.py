"""Which place of the unroll tables each row writes to, and which places the learner is reading. Pure.

A row always has a place. When its unroll is complete it lends the place to the learner and goes on in a spare one; what
comes back is spare again. So no place is written while somebody may read it, and there are as many as rows and spares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Places:
    """`serial` int64 [rows + spares], beside the tables: the number of the unroll that is lent there; 0: none is."""

    def __init__(self, rows: int, serial: NDArray[np.int64]) -> None:
        self.of_row = np.arange(rows)
        self._serial = serial
        self._spare = list(range(len(serial) - 1, rows - 1, -1))
        self._lent: set[int] = set()
        self._last = 0

    @property
    def lent(self) -> int:
        """How many places the learner may be reading."""
        return len(self._lent)

    def lend(self, row: int) -> tuple[int, int] | None:
        """(place, serial) of what lies there; the row has another one now. None: no place is to spare."""
        if not self._spare:
            return None
        place = int(self.of_row[row])
        self._lent.add(place)
        self._last += 1
        self._serial[place] = self._last
        self.of_row[row] = self._spare.pop()
        return place, self._last

    def back(self, place: int) -> None:
        """Nobody reads it any longer, and whoever still does will find another serial. Raises KeyError if not lent."""
        self._lent.remove(place)
        self._serial[place] = 0
        self._spare.append(place)
