"""A file that is readable while a source has work to do, so that the worker's loop does not wait."""

from __future__ import annotations

import socket


class Wakeup:
    """A pair of connected sockets, on every platform."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._is_set = False

    def set(self, work: bool) -> None:
        """Make the file readable, or not."""
        if work == self._is_set:
            return
        self._is_set = work
        if work:
            self._writer.send(b"1")
        else:
            self._reader.recv(1)

    def files(self) -> list[int]:
        """The descriptor to wait for."""
        return [self._reader.fileno()]

    def close(self) -> None:
        """Close both sockets."""
        self._reader.close()
        self._writer.close()
