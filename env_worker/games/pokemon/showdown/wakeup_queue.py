"""A queue between threads whose reader waits on a file descriptor, beside its sockets."""

from __future__ import annotations

import contextlib
import os
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class WakeupQueue(Generic[T]):
    """Any thread puts, one thread drains. Never closed: a late message must not find a closed pipe."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[T] = SimpleQueue()
        self._read_end, self._write_end = os.pipe()
        for end in (self._read_end, self._write_end):
            os.set_blocking(end, False)

    def fileno(self) -> int:
        """Readable when the queue is not empty."""
        return self._read_end

    def put(self, item: T) -> None:
        self._queue.put(item)
        with contextlib.suppress(BlockingIOError):  # the pipe is full: the reader will wake up
            os.write(self._write_end, b"!")

    def drain(self) -> list[T]:
        """Everything since the last call; never blocks."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read_end, 4096):
                pass
        taken: list[T] = []
        with contextlib.suppress(Empty):
            while True:
                taken.append(self._queue.get_nowait())
        return taken
