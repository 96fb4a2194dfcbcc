"""A queue between threads whose reader waits on a file descriptor, beside its sockets."""

from __future__ import annotations

import contextlib
import os
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class WakeupQueue(Generic[T]):
    """Any thread puts, one thread takes. Lives as long as the process: a late message must not find a closed pipe."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[T] = SimpleQueue()
        self._bell, self._ring = os.pipe()
        for end in (self._bell, self._ring):
            os.set_blocking(end, False)

    def fileno(self) -> int:
        """Readable when there is something to take."""
        return self._bell

    def put(self, item: T) -> None:
        self._queue.put(item)
        with contextlib.suppress(BlockingIOError):  # the pipe is full: it rings already
            os.write(self._ring, b"!")

    def drain(self) -> list[T]:
        """Everything since the last call; never blocks."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._bell, 4096):
                pass
        taken: list[T] = []
        with contextlib.suppress(Empty):
            while True:
                taken.append(self._queue.get_nowait())
        return taken
