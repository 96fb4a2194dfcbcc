"""When the open loop sends: Poisson arrivals, fixed in advance, whatever the server does. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_CHUNK = 4096


class PoissonSchedule:
    """Arrival times in seconds on the caller's clock; gaps are exponential with mean 1 / `rate_per_sec`."""

    def __init__(self, rate_per_sec: float, start: float, seed: int) -> None:
        self._mean_gap_sec = 1.0 / rate_per_sec
        self._draw = np.random.default_rng(seed)
        self._last = start
        self._times = self._more()

    @property
    def next(self) -> float:
        """Time of the next arrival that `due` has not returned yet."""
        return float(self._times[0])

    def due(self, now: float) -> NDArray[np.float64]:
        """Arrivals up to `now`, float64 [N], each returned once, oldest first."""
        while self._times[-1] <= now:
            self._times = np.concatenate((self._times, self._more()))
        count = int(np.searchsorted(self._times, now, side="right"))
        due, self._times = self._times[:count], self._times[count:]
        return due

    def _more(self) -> NDArray[np.float64]:
        times = self._last + np.cumsum(self._draw.exponential(self._mean_gap_sec, _CHUNK))
        self._last = float(times[-1])
        return times
