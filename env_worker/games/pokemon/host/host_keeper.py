"""Keeps one simulator host running: restarts it with growing delays, and gives up after several deaths in a row."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simul.common.errors import EnvError
from simul.env_worker.games.pokemon.host.host_messages import HostTick
from simul.env_worker.games.pokemon.host.node_host import START_SEC, HostDied, NodeHost

MAX_DEATHS = 5  # within the window, or in a row: five hangs do not fit into the window
DEATHS_WINDOW_SEC = 60.0
BACKOFF_SEC = (0.0, 0.5, 1.0, 2.0)
LONGEST_TURN_SEC = 1.0  # a longer gap between two polls is the worker's or the machine's, not the host's


class HostKeeper:
    """Owns the host process; the source (of a process that follows: the `Follower`) owns its battles.

    A host that is silent for half of `silence_limit_sec` is pinged, and killed as hung after the whole of it.
    """

    def __init__(
        self,
        node: Path,
        *,
        accelerate: bool,
        index: int,
        tables: dict[str, Any] | None = None,
        replies_per_write: int = 0,
        silence_limit_sec: float = 20.0,
        follow: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node
        self._accelerate = accelerate
        self._replies_per_write = replies_per_write
        self._index = index
        self._follow = follow
        self._name = f"{'following' if follow else 'simulator'} host"
        self._tables = tables  # for a host that encodes
        self._silence_limit_sec = silence_limit_sec
        self._silent_sec = 0.0
        self._pinged = False
        self._polled_at = 0.0
        self._bytes_heard = 0
        self._clock = clock
        self._deaths: deque[float] = deque()
        self._deaths_in_a_row = 0  # without progress between, see `poll`
        self._restart_at = 0.0
        self.backend: NodeHost | None = None
        self._next: NodeHost | None = None  # has not greeted yet
        self._next_limit = 0.0
        self.restarts = 0

    def start(self) -> NodeHost:
        """Start the process; raises EnvError with the host's stderr if it cannot."""
        host = self._make()
        try:
            host.start()
        except BaseException:  # the worker is told to stop: a frozen process would outlive it
            host.close(0.0)
            raise
        return self._adopt(host)

    def _make(self) -> NodeHost:
        return NodeHost(
            self._node, accelerate=self._accelerate, index=self._index, replies_per_write=self._replies_per_write,
            follow=self._follow,
        )  # fmt: skip

    def _adopt(self, host: NodeHost) -> NodeHost:
        if self._tables is not None:
            host.send_tables(self._tables)
        self.backend = host
        self._polled_at = self._clock()
        self._hear(host)
        return host

    def poll(self) -> HostTick:
        """What the host has said. Raises HostDied once, when it is found dead; EnvError after too many deaths.

        Progress is the end of a battle. Of a process that follows, which need not be told of ends, it is any answer:
        the Follower gives up the battle at which two died.
        """
        if self.backend is None:
            return HostTick()
        try:
            tick = self.backend.poll()
            self._watch_silence(self.backend)
        except HostDied:
            self._bury()
            raise
        if tick if self._follow else tick.ended:
            self._deaths_in_a_row = 0
        return tick

    def revive(self) -> NodeHost | None:
        """A new process in place of a dead one, None until its delay is over and it has greeted."""
        now = self._clock()
        if now < self._restart_at:
            return None
        try:
            if self._next is None:
                self._next, self._next_limit = self._make(), now + START_SEC
                self._next.spawn()
            if not self._next.greeted():
                if now > self._next_limit:
                    raise EnvError(f"{self._name} {self._index} did not greet within {START_SEC:g} s")
                return None
        except EnvError:
            self._bury()
            return None
        host, self._next = self._next, None
        self.restarts += 1
        return self._adopt(host)

    def files(self) -> list[int]:
        """What is readable when there is something to poll."""
        return [self.backend.fileno()] if self.backend is not None else []

    @property
    def pids(self) -> list[int]:
        """The process, where it runs."""
        return [self.backend.pid] if self.backend is not None else []

    def close(self) -> None:
        """Stop the process."""
        for host in (self.backend, self._next):
            if host is not None:
                host.close()
        self.backend = self._next = None

    def _hear(self, host: NodeHost) -> None:
        self._bytes_heard = host.bytes_heard
        self._silent_sec = 0.0
        self._pinged = False

    def _watch_silence(self, host: NodeHost) -> None:
        """Raises HostDied, with the host killed, when it hangs."""
        now = self._clock()
        self._silent_sec += min(now - self._polled_at, LONGEST_TURN_SEC)
        self._polled_at = now
        if host.bytes_heard != self._bytes_heard:
            self._hear(host)
        elif self._silent_sec >= self._silence_limit_sec:
            host.close(0.0)
            raise HostDied(f"{self._name} {self._index} hung (silent for {self._silence_limit_sec:g} s) and was killed")
        elif self._silent_sec >= self._silence_limit_sec / 2 and not self._pinged:
            self._pinged = True
            host.ping(0)
            host.flush()

    def _bury(self) -> None:
        now = self._clock()
        self.close()
        self._deaths.append(now)
        self._deaths_in_a_row += 1
        while self._deaths[0] < now - DEATHS_WINDOW_SEC:
            self._deaths.popleft()
        if max(len(self._deaths), self._deaths_in_a_row) >= MAX_DEATHS:
            how = f"within {DEATHS_WINDOW_SEC:.0f} s" if len(self._deaths) >= MAX_DEATHS else "without progress between"
            raise EnvError(
                f"the {self._name} died {MAX_DEATHS} times {how}; run `simul doctor` and look at the worker's log"
            )
        self._restart_at = now + BACKOFF_SEC[min(len(self._deaths) - 1, len(BACKOFF_SEC) - 1)]
