"""A file that is readable while a source has work to do, so that the worker's loop does not wait."""

from __future__ import annotations

import socket


class Wakeup:
    """A pair of connected sockets, on every platform; made when there is work for the first time."""

    def __init__(self) -> None:
        self._pair: tuple[socket.socket, socket.socket] | None = None
        self._is_set = False

    def set(self, work: bool) -> None:
        """Make the file readable, or not."""
        if work == self._is_set:
            return
        if self._pair is None:
            self._pair = socket.socketpair()
        self._is_set = work
        if work:
            self._pair[1].send(b"1")
        else:
            self._pair[0].recv(1)

    def files(self) -> list[int]:
        """The descriptor to wait for; none before the first work."""
        return [] if self._pair is None else [self._pair[0].fileno()]

    def close(self) -> None:
        """Close both sockets."""
        if self._pair is not None:
            for end in self._pair:
                end.close()
        self._pair = None
        self._is_set = False

    def __del__(self) -> None:
        self.close()
