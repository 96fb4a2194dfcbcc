"""How much may wait: rows in flight, of each client and of all. Pure: no sockets, no torch."""

from __future__ import annotations

import math
from collections import Counter

from simul.inference_server.frontend.clients import Client

MAX_RETRY_MS = 1000


class InFlight:
    """Rows that were admitted and are not answered yet."""

    def __init__(self, limit: int, client_limit: int, max_batch: int) -> None:
        self.total = 0
        self.limit = limit
        self.client_limit = client_limit
        self.most = min(limit, client_limit)  # of one message: more could never be admitted
        self.last_batch_sec = 0.001
        self._max_batch = max_batch
        self._rows: Counter[Client] = Counter()

    def has_room(self, client: Client, rows: int) -> bool:
        """Whether `rows` more of a client may be admitted."""
        return self._rows[client] + rows <= self.client_limit and self.total + rows <= self.limit

    def add(self, client: Client, rows: int) -> None:
        """Rows were admitted."""
        self._rows[client] += rows
        self.total += rows

    def remove(self, client: Client, rows: int) -> None:
        """Rows were taken for a batch."""
        self._rows[client] -= rows
        self.total -= rows
        if not self._rows[client]:
            del self._rows[client]

    def of(self, client: Client) -> int:
        """Rows of one client."""
        return self._rows[client]

    def retry_after_ms(self) -> int:
        """When what waits now will have been answered, going by the last batch: 1 to 1000 ms."""
        batches = self.total // self._max_batch + 1
        return min(MAX_RETRY_MS, math.ceil(batches * self.last_batch_sec * 1000))
