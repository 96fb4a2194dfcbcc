"""Whether a batch waits for clients that will be back at once. Pure: time is an argument.

Closed-loop clients that come back while another's batch is on the device take turns for ever, each in a batch of its
own. Waiting brings them together; it pays where they are back sooner than a batch costs that has next to nothing in
it. So that is how long is waited at most, and never longer than the last forward took. Waits in vain become rare: each
doubles the number of batches without one, for the clients that did not come and for everybody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from simul.inference_server.frontend.clients import Client

MOST_DOUBLINGS = 6
LAST_BATCHES = 2


@dataclass
class _Trust:
    """Waits in vain, in a row; `skip`: batches that do not wait now."""

    level: int = 0
    skip: int = 0

    def lose(self) -> None:
        self.level = min(self.level + 1, MOST_DOUBLINGS)
        self.skip = 1 << self.level


class Fill:
    """Knows who holds a reply of the last two batches and has not come back."""

    def __init__(self, window_sec: float) -> None:
        self._window_sec = window_sec
        self._limit_sec = 0.0
        self._since = 0.0
        self._holders: deque[set[Client]] = deque(maxlen=LAST_BATCHES)
        self._clients: WeakKeyDictionary[Client, _Trust] = WeakKeyDictionary()
        self._everybody = _Trust()

    def back(self, client: Client, now: float, first: bool) -> None:
        """A client's rows came; `first`: no others wait."""
        if first:
            self._since = max(self._since, now)
        for holders in self._holders:
            if client in holders:
                holders.discard(client)
                if now < self._since + self._limit_sec:
                    self._clients[client] = _Trust()

    def replied(self, clients: Iterable[Client], forward_sec: float, now: float) -> None:
        """A batch of these clients was answered."""
        together = set(clients)
        if len(together) > 1 and not self._everybody.skip:
            self._everybody.level = 0
        for trust in (self._everybody, *self._clients.values()):
            trust.skip = max(0, trust.skip - 1)
        self._holders.append(together)
        self._limit_sec = min(self._window_sec, forward_sec)
        self._since = now

    def patience(self, now: float) -> float:
        """Seconds that the rows that are there shall wait for others, 0: go."""
        if self._everybody.skip:
            return 0.0
        missing = [client for client in set().union(*self._holders) if not self._trust(client).skip]
        if not missing:
            return 0.0
        left = self._since + self._limit_sec - now
        if left > 0:
            return left
        for trust in (self._everybody, *map(self._trust, missing)):
            trust.lose()
        return 0.0

    def _trust(self, client: Client) -> _Trust:
        return self._clients.setdefault(client, _Trust())
