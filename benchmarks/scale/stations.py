"""Stations of the model: processor cores, which their threads share, and threads, which take one job after another.

Times are seconds of the simulated clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

import simpy


class Core:
    """One processor core: n threads that compute at once get 1/n of it each (egalitarian processor sharing).

    `draw`: a factor of mean 1 for the time of each job; None: all are as given.
    """

    def __init__(self, env: simpy.Environment, draw: Callable[[], float] | None = None) -> None:
        self._draw = draw
        self._busy_sec = 0.0
        self._env = env
        self._jobs: list[tuple[float, int, simpy.Event]] = []  # by the share at which each is done
        self._numbers = count()
        self._share = 0.0  # seconds of computing that each present job has got since the start
        self._shared_at = 0.0
        self._next_end = 0  # number of the newest timeout; older ones are void

    def compute(self, seconds: float) -> simpy.Event:
        """An event after `seconds` of processor time."""
        self._advance()
        done = self._env.event()
        if self._draw is not None:
            seconds *= self._draw()
        heappush(self._jobs, (self._share + seconds, next(self._numbers), done))
        self._schedule()
        return done

    def busy_sec(self) -> float:
        """How long at least one thread has computed."""
        self._advance()
        return self._busy_sec

    def _advance(self) -> None:
        elapsed, self._shared_at = self._env.now - self._shared_at, self._env.now
        if self._jobs:
            self._share += elapsed / len(self._jobs)
            self._busy_sec += elapsed

    def _schedule(self) -> None:
        self._next_end += 1
        if self._jobs:
            left = max(0.0, self._jobs[0][0] - self._share) * len(self._jobs)
            timeout = self._env.timeout(left, self._next_end)
            timeout.callbacks.append(self._end)

    def _end(self, timeout: simpy.Event) -> None:
        if timeout.value != self._next_end:
            return
        self._advance()
        self._share, _, done = heappop(self._jobs)  # exactly, whatever the rounding
        done.succeed()
        self._schedule()


class Thread:
    """Takes its jobs in the order of their arrival. Where it was idle, its first job begins `wake_sec` later.

    Attributes:
        worked_sec: processor time of the jobs that have begun.
    """

    def __init__(self, env: simpy.Environment, core: Core, wake_sec: float = 0.0) -> None:
        self.worked_sec = 0.0
        self._env = env
        self._core = core
        self._wake_sec = wake_sec
        self._jobs: deque[tuple[float, Callable[[], object]]] = deque()
        self._active = False

    def submit(self, seconds: float, then: Callable[[], object]) -> None:
        """Queue a job of `seconds` of processor time; `then` is called at its end."""
        self._jobs.append((seconds, then))
        if not self._active:
            self._active = True
            if self._wake_sec:
                self._env.timeout(self._wake_sec).callbacks.append(lambda _: self._begin())
            else:
                self._begin()

    def _begin(self) -> None:
        seconds, then = self._jobs.popleft()
        self.worked_sec += seconds
        self._core.compute(seconds).callbacks.append(lambda _: self._end(then))

    def _end(self, then: Callable[[], object]) -> None:
        then()
        if self._jobs:
            self._begin()
        else:
            self._active = False
