"""What arrives at a socket."""

from __future__ import annotations

import time
from typing import Any

from simul.common.transport import Poller


def receive(it: Any, timeout_sec: float = 60.0) -> Any:
    """Its next message; fails where none comes."""
    deadline = time.monotonic() + timeout_sec
    poller = Poller([it])
    while (received := it.receive()) is None:
        if time.monotonic() > deadline:
            raise AssertionError("nothing came")
        poller.wait(0.05)
    return received
