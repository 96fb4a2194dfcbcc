"""One client's load on a policy, closed or open loop, until it is told to stop.

Closed loop: a session's next row goes out as soon as its answer is there; all that are ready go in one message.
Open loop: rows are due at times fixed in advance; a row that finds no free session waits, and its wait counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simul.common.client.columns import Answer, Columns
from simul.common.protocol.errors import InferenceError
from simul.common.protocol.messages import Error
from simul.inference_server.loadtest.schedule import PoissonSchedule
from simul.inference_server.loadtest.traffic import Seats
from simul.inference_server.loadtest.windows import Window, WindowClock

SILENT_SEC = 5.0
WAIT_SEC = 0.02
SPIN_SEC = 0.002  # waits are whole milliseconds, rounded up: closer than this to the next arrival, look again and again
REFUSED_PAUSE_SEC = 0.001

Seat = NDArray[np.int64]
Times = NDArray[np.float64]


class Policy(Protocol):
    """Whoever answers: `simul.common.client.columns.ColumnClient`, or a policy in this process."""

    refusals: list[Error]

    def submit(self, columns: Columns) -> int:
        """Take rows; the number of the message."""

    def poll(self) -> list[Answer]:
        """What was answered since the last poll."""

    def wait(self, timeout_sec: float) -> None:
        """Until something may have arrived."""


@dataclass
class _Sent:
    """A message and what is still owed of it."""

    seats: Seat
    since: Times  # when each row was sent (closed loop) or due (open loop)
    owed: int


class Driver:
    """Keeps the sessions of one client going and counts their answers."""

    def __init__(
        self, policy: Policy, seats: Seats, windows: WindowClock, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._policy = policy
        self._seats = seats
        self._windows = windows
        self._clock = clock
        self._sent: dict[int, _Sent] = {}
        self._heard_at = clock()

    def closed_loop(self, envs: int, tick: Callable[[Window], bool]) -> None:
        """Every session has one row on its way, always. `tick` takes a window and returns True to stop."""
        ready = np.arange(envs)
        while self._go_on(now := self._clock(), tick):
            if ready.size:
                self._submit(ready, np.full(ready.size, now))
            ready = self._answered()
            if not ready.size:
                self._policy.wait(WAIT_SEC)

    def open_loop(self, envs: int, schedule: PoissonSchedule, tick: Callable[[Window], bool]) -> None:
        """Rows as `schedule` demands them, on `envs` sessions. `tick` as in `closed_loop`."""
        free = np.arange(envs)
        pending = np.zeros(0)
        while self._go_on(now := self._clock(), tick):
            pending = np.concatenate((pending, schedule.due(now)))
            count = min(pending.size, free.size)
            if count:
                self._windows.send_lags(now - pending[:count])
                self._submit(free[:count], pending[:count])
                free, pending = free[count:], pending[count:]
            answered = self._answered()
            free = np.concatenate((free, answered))
            if not answered.size:  # without a free session only an answer can help
                gap = schedule.next - self._clock() - SPIN_SEC if free.size else WAIT_SEC
                self._policy.wait(max(0.0, min(gap, WAIT_SEC)))

    def _submit(self, seats: Seat, since: Times) -> None:
        number = self._policy.submit(self._seats.rows(seats))
        self._seats.advance(seats)
        self._sent[number] = _Sent(seats, since, len(seats))

    def _answered(self) -> Seat:
        """Seats that are ready for their next row; those that were refused begin a new episode."""
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

    def _go_on(self, now: float, tick: Callable[[Window], bool]) -> bool:
        window = self._windows.roll(now, time.process_time())
        return window is None or not tick(window)
