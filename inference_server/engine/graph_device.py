"""What a device must offer so that batches can be replays: `simul.inference_server.engine.cuda` is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch import Tensor


class Graph(Protocol):
    """Recorded work on fixed memory."""

    def replay(self) -> None:
        """Queue all of it again."""


class Lane(Protocol):
    """Where the graphs of one policy are captured. They share memory, since only one of them runs at a time."""

    def capture(self, body: Callable[[], None]) -> Graph:
        """Run `body` to warm up, then record it. Raises RuntimeError where it cannot be recorded."""


class Event(Protocol):
    """A mark in the device's queue."""

    def record(self) -> None:
        """Set it behind everything that was queued so far."""

    def synchronize(self) -> None:
        """Wait until the device has come to it."""


class GraphDevice(Protocol):
    """A device that works off a queue, in order, while the host goes on."""

    def host_bytes(self, size: int) -> Tensor:
        """uint8 [size] on the host, which the device can copy from and to by itself (pinned memory)."""

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Queue a copy, of `host_bytes` on one side or the other."""

    def event(self) -> Event:
        """A new mark."""

    def lane(self) -> Lane:
        """A new policy's; what it holds is given back when it is no longer referred to."""
