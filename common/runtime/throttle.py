"""Throttle of a thread that works beside a serving loop.

Where both share a core the loop waits for whatever the thread is at: not for longer than a piece of work, if it rests
after each. Being nice instead would starve the thread wherever others keep the cores busy, and the system still lets it
run for milliseconds at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Throttle = Callable[[], None]

WORTH_SEC = 400e-6  # of processor time: less work than that goes on
TIMES = 3  # as long as the work took: a quarter of a core at most


def no_throttle() -> None:
    """Go on: nobody is served meanwhile."""


class CpuThrottle:
    """Call it between two pieces of work, on the thread that made it."""

    def __init__(self) -> None:
        self._since = time.thread_time()

    def __call__(self) -> None:
        worked = time.thread_time() - self._since
        if worked > WORTH_SEC:
            time.sleep(TIMES * worked)
            self._since = time.thread_time()
