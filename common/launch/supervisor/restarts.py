"""When a dead role is started again, and when to give up. Pure: time is an argument."""

from __future__ import annotations

WINDOW_SEC = 120.0
MOST_DEATHS = 10  # within the window: more than that is a fault that restarting does not mend
MOST_FAILED_STARTS = 5  # in a row, however long each of them took: on a loaded machine ten do not fit into the window
FIRST_DELAY_SEC = 0.1
LONGEST_DELAY_SEC = 0.8  # the promise is recovery within 10 s, so the wait stays well below a second


class RestartPolicy:
    """Back-off of one process."""

    def __init__(self, window_sec: float = WINDOW_SEC, most_deaths: int = MOST_DEATHS) -> None:
        self._window_sec = window_sec
        self._most_deaths = most_deaths
        self._deaths: list[float] = []
        self._failed_starts = 0

    def died(self, now: float, *, was_ready: bool = True) -> float | None:
        """Seconds to wait before the restart; None: give up. `was_ready`: this life had become ready."""
        self._deaths = [at for at in self._deaths if now - at < self._window_sec] + [now]
        self._failed_starts = 0 if was_ready else self._failed_starts + 1
        if len(self._deaths) >= self._most_deaths or self._failed_starts >= MOST_FAILED_STARTS:
            return None
        return min(FIRST_DELAY_SEC * 2.0 ** (len(self._deaths) - 1), LONGEST_DELAY_SEC)
