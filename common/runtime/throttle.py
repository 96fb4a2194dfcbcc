"""Throttle of a background thread beside a serving loop.

Where both share a core, the loop waits for the thread; a pause after each piece of work bounds that wait to one piece.
A nice value would starve the thread on busy cores, and would still let it run for milliseconds at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Throttle = Callable[[], None]

MIN_WORK_SEC = 400e-6  # processor time below which work continues without a pause
PAUSE_FACTOR = 3  # a pause lasts this times the work: at most a quarter of a core


def no_throttle() -> None:
    """No pause: nothing is served meanwhile."""


class CpuThrottle:
    """Call it between two pieces of work, on the thread that created it."""

    def __init__(self) -> None:
        self._since = time.thread_time()

    def __call__(self) -> None:
        worked = time.thread_time() - self._since
        if worked > MIN_WORK_SEC:
            time.sleep(PAUSE_FACTOR * worked)
            self._since = time.thread_time()
