"""When a process is restarted, and which ones are late to start. Pure: time is an argument."""

from __future__ import annotations

from collections.abc import Mapping

RESTART_WINDOW_SEC = 120.0
MOST_DEATHS = 10  # within the window: more than that is a fault that a restart does not fix
MOST_FAILED_STARTS = 5  # in a row: on a loaded machine ten slow starts do not fit into the window
FIRST_DELAY_SEC = 0.1
LONGEST_DELAY_SEC = 0.8  # recovery is promised within 10 s
START_ALERT_SEC = 15.0  # a start takes seconds, on a loaded machine some more
IDLE_SHARE = 0.01  # of a core: a process that starts, and uses less, waits or hangs


class RestartPolicy:
    """When one process is restarted, and when to give up. Pure: time is an argument."""

    def __init__(self) -> None:
        self._deaths: list[float] = []
        self._failed_starts = 0

    def record_death(self, now: float, *, was_ready: bool = True) -> float | None:
        """Seconds to wait before the restart; None: give up. `was_ready`: this life had become ready."""
        self._deaths = [at for at in self._deaths if now - at < RESTART_WINDOW_SEC] + [now]
        self._failed_starts = 0 if was_ready else self._failed_starts + 1
        if len(self._deaths) >= MOST_DEATHS or self._failed_starts >= MOST_FAILED_STARTS:
            return None
        return min(FIRST_DELAY_SEC * 2.0 ** (len(self._deaths) - 1), LONGEST_DELAY_SEC)


class StartAlerts:
    """Which processes to name that are late to become ready. Pure: time is an argument.

    Those that have hardly used the processor since the last look: after START_ALERT_SEC, and each time that the wait
    has doubled. The others, which are slow, as on a loaded machine: after twice as long, and four times as long again.
    """

    def __init__(self, began: float) -> None:
        self._began = self._looked_at = began
        self._cpu_sec: dict[int, float] = {}
        self._idle_alert_sec, self._slow_alert_sec = START_ALERT_SEC, 2 * START_ALERT_SEC

    def due(self, now: float) -> bool:
        """Whether the next look is due."""
        return now - self._looked_at >= START_ALERT_SEC / 3

    def look(self, now: float, cpu_sec: Mapping[int, float]) -> tuple[list[int], list[int]]:
        """`cpu_sec`: processor seconds of each late process so far. Returns the idle and the slow ones to name now."""
        least = IDLE_SHARE * (now - self._looked_at)
        idle = [index for index, used in cpu_sec.items() if used - self._cpu_sec.get(index, 0.0) <= least]
        slow = [index for index in cpu_sec if index not in idle]
        self._looked_at, self._cpu_sec, waited = now, dict(cpu_sec), now - self._began
        if waited < self._idle_alert_sec:
            idle = []
        elif idle:
            self._idle_alert_sec = 2 * waited
        if waited < self._slow_alert_sec:
            slow = []
        elif slow:
            self._slow_alert_sec = 4 * waited
        return idle, slow
