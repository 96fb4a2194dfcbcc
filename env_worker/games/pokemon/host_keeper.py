"""Keeps one simulator host alive: restarts it when it dies, later and later, and gives up on a run of deaths."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.errors import EnvError
from env_worker.games.pokemon.host import HostDied, HostTick, SimHost

MAX_DEATHS = 5
DEATHS_WINDOW_SEC = 60.0
BACKOFF_SEC = (0.0, 0.5, 1.0, 2.0)


class HostKeeper:
    """Owns the host process; its battles are the source's business."""

    def __init__(
        self,
        node: Path,
        *,
        accelerate: bool,
        index: int,
        tables: dict[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node
        self._accelerate = accelerate
        self._index = index
        self._tables = tables  # for a host that encodes
        self._clock = clock
        self._deaths: deque[float] = deque()
        self._restart_at = 0.0
        self.host: SimHost | None = None
        self.restarts = 0

    def start(self) -> SimHost:
        """Start the process; raises EnvError with the host's own words if it cannot."""
        host = SimHost(self._node, accelerate=self._accelerate, index=self._index)
        host.start()
        if self._tables is not None:
            host.send_tables(self._tables)
        self.host = host
        return host

    def poll(self) -> HostTick:
        """What the host has said. Raises HostDied once, when it is found dead; EnvError after too many deaths."""
        if self.host is None:
            return HostTick()
        try:
            return self.host.poll()
        except HostDied:
            self._bury()
            raise

    def revive(self) -> SimHost | None:
        """A new process in place of a dead one, None while its time has not come."""
        if self._clock() < self._restart_at:
            return None
        try:
            host = self.start()
        except EnvError:
            self._bury()
            return None
        self.restarts += 1
        return host

    def close(self) -> None:
        """Stop the process."""
        if self.host is not None:
            self.host.close()
            self.host = None

    def _bury(self) -> None:
        now = self._clock()
        self.close()
        self._deaths.append(now)
        while self._deaths[0] < now - DEATHS_WINDOW_SEC:
            self._deaths.popleft()
        if len(self._deaths) >= MAX_DEATHS:
            raise EnvError(
                f"the simulator host died {len(self._deaths)} times within {DEATHS_WINDOW_SEC:.0f} s; "
                "run `simul doctor` and look at the worker's log"
            )
        self._restart_at = now + BACKOFF_SEC[min(len(self._deaths) - 1, len(BACKOFF_SEC) - 1)]
