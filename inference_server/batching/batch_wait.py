"""Whether a batch waits for clients that are about to return, and whether waiting pays. Pure: time is an argument.

Closed-loop clients that return while another's batch is on the device alternate for ever, each in a batch of its own.
Waiting brings them together; it pays where they return sooner than a batch with next to no rows costs. That cost is the
longest wait, and never longer than the last forward took. Waits in vain become rare: each doubles the number of batches
without one, for the clients that did not come and for all.

Whether a wait pays depends on what a batch costs, on what its rows cost, and on how long clients take; the sum of it
all is the rate of rows. So `WaitAutotune` tries the other way now and then, ever more rarely while it loses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from simul.inference_server.sessions.clients import Client

MOST_DOUBLINGS = 6
LAST_BATCHES = 2
SETTLE_BATCHES = 8  # batches that still show the way before
TRIAL_BATCHES = 48
TRIAL_SEC = 0.1
PAUSE_SEC = 0.5  # a pause in the traffic of so long is left out of the rate
BETTER = 1.03
HOPELESS = 0.9
HOPELESS_BATCHES = 16
MOST_TRIALS_BETWEEN = 32


@dataclass
class _Backoff:
    """`level`: waits in vain in a row; `skip`: batches that will not wait."""

    level: int = 0
    skip: int = 0

    def back_off(self) -> None:
        self.level = min(self.level + 1, MOST_DOUBLINGS)
        self.skip = 1 << self.level


class BatchWait:
    """Tracks the clients that hold a reply of the last two batches and have not returned."""

    def __init__(self, window_sec: float) -> None:
        self._window_sec = window_sec
        self._limit_sec = 0.0
        self._since = 0.0
        self._holders: deque[set[Client]] = deque(maxlen=LAST_BATCHES)
        self._clients: WeakKeyDictionary[Client, _Backoff] = WeakKeyDictionary()
        self._all_clients = _Backoff()

    def client_returned(self, client: Client, now: float, first: bool) -> None:
        """Rows of a client arrived; `first`: no others wait."""
        if first:
            self._since = max(self._since, now)
        for holders in self._holders:
            if client in holders:
                holders.discard(client)
                if now < self._since + self._limit_sec:
                    self._clients[client] = _Backoff()

    def batch_answered(self, clients: Iterable[Client], forward_sec: float, now: float) -> None:
        """A batch of these clients was answered: each of them holds a reply now."""
        together = set(clients)
        if len(together) > 1 and not self._all_clients.skip:
            self._all_clients.level = 0
        for backoff in (self._all_clients, *self._clients.values()):
            backoff.skip = max(0, backoff.skip - 1)
        self._holders.append(together)
        self._limit_sec = min(self._window_sec, forward_sec)
        self._since = now

    def wait_sec(self, now: float) -> float:
        """Seconds that the queued rows wait for more; 0: batch them now."""
        if self._all_clients.skip:
            return 0.0
        missing = [client for client in set().union(*self._holders) if not self._backoff_of(client).skip]
        if not missing:
            return 0.0
        left = self._since + self._limit_sec - now
        if left > 0:
            return left
        for backoff in (self._all_clients, *map(self._backoff_of, missing)):
            backoff.back_off()
        return 0.0

    def _backoff_of(self, client: Client) -> _Backoff:
        return self._clients.setdefault(client, _Backoff())


class WaitAutotune:
    """Measures rows a second with and without waits, and keeps the faster way. `waits`: the way to take now."""

    def __init__(self) -> None:
        self.waits = True
        self._rate = {True: 0.0, False: 0.0}  # rows a second, 0: not known
        self._best = True
        self._between = self._left = 1  # trials of the better way until the other one is tried
        self._rows = self._batches = 0
        self._began = self._last = 0.0

    def batch_answered(self, rows: int, now: float) -> None:
        """Count an answered batch."""
        if now - self._last > PAUSE_SEC:
            self._began += now - self._last
        self._last = now
        self._batches += 1
        if self._batches <= SETTLE_BATCHES:
            self._began = now
            return
        self._rows += rows
        played, seconds = self._batches - SETTLE_BATCHES, now - self._began
        hopeless = self.waits != self._best and self._rows < HOPELESS * self._rate[self._best] * seconds
        if (hopeless and played >= HOPELESS_BATCHES) or (played >= TRIAL_BATCHES and seconds >= TRIAL_SEC):
            self._record_rate(self._rows / seconds)
            self._rows = self._batches = 0

    def _record_rate(self, rate: float) -> None:
        known = self._rate[self.waits]
        self._rate[self.waits] = (known + rate) / 2 if known else rate
        if self.waits == self._best:
            self._left -= 1
            if self._left <= 0:
                self.waits = not self._best
            return
        if self._rate[self.waits] > BETTER * self._rate[self._best]:
            self._best, self._between = self.waits, 1
        else:
            self._between = min(4 * self._between, MOST_TRIALS_BETWEEN)
        self.waits, self._left = self._best, self._between
