"""One client's load on a policy, closed or open loop: its rows, their times, and the loops that send them.

Closed loop: a session's next row goes out as soon as its answer is there; all that are ready go in one message.
Open loop: rows are due at Poisson times fixed in advance; a row without a free session waits, and the wait counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simul.common.client.columns import Answer, Columns
from simul.common.client.load.windows import Window, WindowClock
from simul.common.errors import InferenceError
from simul.common.protocol.messages import START, Error
from simul.common.protocol.specs import GameSpec, random_observations

_EPISODE, _STEP = 2, 3  # columns of `keys`


class SessionRows:
    """The next row of each of `envs` sessions, as columns. Observations and masks are drawn once, and sent again."""

    def __init__(self, spec: GameSpec, envs: int, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self._next = Columns.empty(envs, spec)
        self._next.keys[:, 0] = np.arange(envs)
        self._next.flags[:] = START
        self._next.observation[:] = random_observations(spec, envs, draw)
        self._next.mask[:] = masks(spec, envs, draw)

    def rows(self, seats: NDArray[np.int64]) -> Columns:
        """Rows of `seats`, int64 [N], for one message. All seats in order: no copy."""
        if len(seats) == len(self._next.flags) and bool((seats[:-1] < seats[1:]).all()):
            return self._next
        return Columns(**{name: column[seats] for name, column in vars(self._next).items()})

    def advance(self, seats: NDArray[np.int64]) -> None:
        """Advance by one step: the rows were sent."""
        self._next.keys[seats, _STEP] += 1
        self._next.flags[seats] = 0

    def restart(self, seats: NDArray[np.int64]) -> None:
        """Begin a new episode: the rows were refused."""
        self._next.keys[seats, _EPISODE] += 1
        self._next.keys[seats, _STEP] = 0
        self._next.flags[seats] = START


def masks(spec: GameSpec, rows: int, draw: np.random.Generator) -> NDArray[np.uint8]:
    """uint8 [rows, A], 1 = legal: about half of the actions, one at least."""
    legal = draw.integers(0, 2, (rows, spec.num_actions), np.uint8)
    legal[np.arange(rows), draw.integers(0, spec.num_actions, rows)] = 1
    return legal


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


SILENT_SEC = 15.0
WAIT_SEC = 0.02
SPIN_SEC = 0.002  # waits are whole milliseconds, rounded up: this close to the next arrival the loop polls
REFUSED_PAUSE_SEC = 0.001

Seat = NDArray[np.int64]
Times = NDArray[np.float64]


class LoadTarget(Protocol):
    """What answers: a column client that waits on its socket (`LoadClient`), or a policy in this process."""

    refusals: list[Error]

    def submit(self, columns: Columns) -> int:
        """Send rows. Returns the number of the message."""

    def poll(self) -> list[Answer]:
        """Answers since the last poll."""

    def wait(self, timeout_sec: float) -> None:
        """Wait until something may have arrived."""


@dataclass
class _Sent:
    """A message and its rows without an answer."""

    seats: Seat
    since: Times  # when each row was sent (closed loop) or due (open loop)
    owed: int


class LoadDriver:
    """Steps the sessions of one client and counts their answers."""

    def __init__(
        self,
        policy: LoadTarget,
        seats: SessionRows,
        windows: WindowClock,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._policy = policy
        self._seats = seats
        self._windows = windows
        self._clock = clock
        self._sent: dict[int, _Sent] = {}
        self._heard_at = clock()

    def closed_loop(self, envs: int, tick: Callable[[Window], bool]) -> None:
        """Every session always has one row in flight. `tick` takes a window and returns True to stop."""
        ready = np.arange(envs)
        while self._roll_window(now := self._clock(), tick):
            if ready.size:
                self._submit(ready, np.full(ready.size, now))
            ready = self._answered()
            if not ready.size:
                self._policy.wait(WAIT_SEC)

    def open_loop(self, envs: int, schedule: PoissonSchedule, tick: Callable[[Window], bool]) -> None:
        """Rows when `schedule` says so, on `envs` sessions. `tick` as in `closed_loop`."""
        free = np.arange(envs)
        pending = np.zeros(0)
        while self._roll_window(now := self._clock(), tick):
            pending = np.concatenate((pending, schedule.due(now)))
            count = min(pending.size, free.size)
            if count:
                self._windows.send_lags(now - pending[:count])
                self._submit(free[:count], pending[:count])
                free, pending = free[count:], pending[count:]
            answered = self._answered()
            free = np.concatenate((free, answered))
            if not answered.size:  # without a free session only an answer continues
                gap = schedule.next - self._clock() - SPIN_SEC if free.size else WAIT_SEC
                self._policy.wait(max(0.0, min(gap, WAIT_SEC)))

    def _submit(self, seats: Seat, since: Times) -> None:
        number = self._policy.submit(self._seats.rows(seats))
        self._seats.advance(seats)
        self._sent[number] = _Sent(seats, since, len(seats))

    def _answered(self) -> Seat:
        """Seats that are ready for their next row; refused ones begin a new episode."""
        ready = []
        answers = self._policy.poll()
        now = self._clock()
        for answer in answers:
            sent = self._sent[answer.id]
            ready.append(sent.seats[answer.rows])
            self._windows.latencies(now - sent.since[answer.rows])
            self._settle(answer.id, sent, len(answer.rows))
        if self._policy.refusals:
            ready.extend(self._refused(error) for error in self._policy.refusals)
            self._policy.refusals.clear()
            self._policy.wait(REFUSED_PAUSE_SEC)
        if ready:
            self._heard_at = now
            return np.concatenate(ready)
        if self._sent and now - self._heard_at > SILENT_SEC:
            raise InferenceError("ERR_TIMEOUT", f"the server has answered nothing for {SILENT_SEC:.0f} s")
        if not self._sent:
            self._heard_at = now
        return np.zeros(0, np.int64)

    def _refused(self, error: Error) -> Seat:
        sent = self._sent.get(error.id)
        if sent is None:
            raise InferenceError(error.code, error.message)
        seats = sent.seats[list(error.rows)] if error.rows else sent.seats
        self._windows.errors(error.code, len(seats))
        self._seats.restart(seats)
        self._settle(error.id, sent, len(seats))
        return seats

    def _settle(self, number: int, sent: _Sent, rows: int) -> None:
        sent.owed -= rows
        if sent.owed <= 0:
            del self._sent[number]

    def _roll_window(self, now: float, tick: Callable[[Window], bool]) -> bool:
        window = self._windows.roll(now, time.process_time())
        return window is None or not tick(window)
