"""Which inference server each env worker plays on. Pure.

Rendezvous hashing: a worker prefers the server with which its name hashes highest. No server gets more than its part,
rounded up, so the next in a worker's order takes it where the first is full. Where a server is lost only its own
workers move; the others keep their games.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping

LOST_AFTER_SEC = 30.0  # a restart takes seconds; a server that does not work for so long is lost


def bind_workers(workers: int, servers: Collection[int], before: Mapping[int, int] | None = None) -> dict[int, int]:
    """The server of each worker, by their indices.

    Args:
        workers: number of workers.
        servers: those that are not lost.
        before: the last binding; workers stay on servers that are not lost.

    Raises ValueError: there is no server.
    """
    if not servers:
        raise ValueError("expected at least one server, got none")
    most = -(-workers // len(servers))
    bound = {worker: server for worker, server in (before or {}).items() if server in servers and worker < workers}
    load = Counter(bound.values())
    for worker in range(workers):
        if worker not in bound:
            order = sorted(servers, key=lambda server: _score(worker, server), reverse=True)
            bound[worker] = next((server for server in order if load[server] < most), order[0])
            load[bound[worker]] += 1
    return bound


class WorkerBinding:
    """The binding over a run's time.

    A server that works again gets no worker back: they would lose their games. One that was not ready when the run
    started gets its workers once.
    """

    def __init__(self, workers: int, servers: int) -> None:
        self.bound = bind_workers(workers, range(servers))
        self._workers, self._servers = workers, servers
        self._failed_at: dict[int, float] = {}
        self._waiting: dict[int, list[int]] = {}  # by a server that was not ready at the start: its workers

    def start_without(self, late: Collection[int]) -> None:
        """Workers of servers that are `late` start on the others, until theirs works for the first time."""
        self._waiting = {late_one: [w for w, server in self.bound.items() if server == late_one] for late_one in late}
        ready = set(range(self._servers)) - set(late)  # with workers or not
        if ready:
            self.bound = bind_workers(self._workers, ready, self.bound)

    def take_back(self, works: Mapping[int, bool]) -> dict[int, int]:
        """The workers of late servers that work now, with these servers. `works`: as for `update`."""
        moved = {
            worker: server
            for server in [server for server in self._waiting if works.get(server)]
            for worker in self._waiting.pop(server)
            if self.bound[worker] != server
        }
        self.bound |= moved
        return moved

    def update(self, works: Mapping[int, bool], now: float) -> dict[int, int]:
        """The workers that move, with their new servers. `works`: whether each server reports and is ready."""
        self._failed_at = {server: self._failed_at.get(server, now) for server, well in works.items() if not well}
        lost = {server for server, since in self._failed_at.items() if now - since >= LOST_AFTER_SEC}
        if not lost or not any(works.values()):
            return {}
        bound = bind_workers(self._workers, works.keys() - lost, self.bound)
        moved = {worker: server for worker, server in bound.items() if server != self.bound[worker]}
        self.bound = bound
        return moved

    def exclude_pause(self, seconds: float) -> None:
        """The supervisor itself was paused for `seconds`: do not count them."""
        self._failed_at = {server: since + seconds for server, since in self._failed_at.items()}


def _score(worker: int, server: int) -> bytes:
    return hashlib.sha256(f"worker-{worker}/server-{server}".encode()).digest()
