"""Waits for sockets."""

from __future__ import annotations

import time
from collections.abc import Iterable

import zmq

from simul.common.transport.base import Socket

LOOK_EVERY_SEC = 30e-6  # short enough to cost no latency, long enough to leave the core to others


class Poller:
    """Waits until a socket or a file descriptor is readable."""

    def __init__(self, sockets: Iterable[Socket] = ()) -> None:
        self._poller = zmq.Poller()
        self._files: set[int] = set()
        for socket in sockets:
            self._poller.register(socket.raw, zmq.POLLIN)

    def set_files(self, files: Iterable[int]) -> None:
        """Watch exactly these file descriptors besides the sockets."""
        wanted = set(files)
        for file in self._files - wanted:
            self._poller.unregister(file)
        for file in wanted - self._files:
            self._poller.register(file, zmq.POLLIN)
        self._files = wanted

    def wait(self, timeout_sec: float) -> bool:
        """True when something is readable; False after `timeout_sec` (whole milliseconds, rounded up)."""
        return bool(self._poller.poll(int(-(-timeout_sec * 1000 // 1))))

    def wait_briefly(self, timeout_sec: float) -> bool:
        """`wait` to parts of a millisecond: for the last of them it looks again and again, and sleeps in between."""
        deadline = time.monotonic() + timeout_sec
        while (left := deadline - time.monotonic()) > 0:
            if self._poller.poll(int(left * 1000)):
                return True
            time.sleep(LOOK_EVERY_SEC)
        return bool(self._poller.poll(0))
