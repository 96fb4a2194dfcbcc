"""What the learner's main loop and its I/O thread share."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress


class SharedState:
    """One lock for all that both threads touch, and the ways in which one tells the other something.

    Attributes:
        changed: the lock; notified when something has arrived or the I/O thread has failed.
        events: sentences for the view.
        closing: the I/O thread is asked to end.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.events: deque[str] = deque(maxlen=100)
        self.closing = False
        self._failure: BaseException | None = None
        self._wake_up, self._woken = socket.socketpair()
        for end in (self._wake_up, self._woken):
            end.setblocking(False)

    def wait_for(self, condition: Callable[[], object], timeout_sec: float) -> None:
        """Main loop, under `changed`: wait until `condition()`, or for `timeout_sec`.

        Raises:
            RuntimeError: the I/O thread has failed.
        """
        self.changed.wait_for(lambda: condition() or self._failure, timeout_sec)
        if self._failure is not None:
            raise RuntimeError("the learner's I/O thread failed") from self._failure

    def wake(self) -> None:
        """Main loop: end the I/O thread's wait for its sockets."""
        with suppress(BlockingIOError):  # a wake-up is pending already
            self._wake_up.send(b"\0")

    def close(self) -> None:
        """Main loop: close the wake-up; the I/O thread has ended."""
        for end in (self._wake_up, self._woken):
            end.close()

    def fail(self, error: BaseException) -> None:
        """I/O thread: `wait_for` raises from now on."""
        with self.changed:
            self._failure = error
            self.changed.notify_all()

    def woken_file(self) -> int:
        """I/O thread: the file descriptor that is readable after `wake`."""
        return self._woken.fileno()

    def clear_wake_up(self) -> None:
        """I/O thread: `woken_file` is no longer readable."""
        with suppress(BlockingIOError):
            self._woken.recv(4096)
