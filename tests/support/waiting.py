"""Waiting for the very thing that a test asserts; the time-out names what did not come."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_SEC = 100.0  # for what nobody has promised a time: only a test that fails waits so long
POLL_SEC = 0.01
T = TypeVar("T")


def wait_for(condition: Callable[[], T], timeout_sec: float = PATIENCE_SEC) -> T:
    """Wait until `condition()` is true, and return it; else AssertionError with its source and variables."""
    deadline = time.monotonic() + timeout_sec
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {timeout_sec:g} s: {_described(condition)}"
        time.sleep(POLL_SEC)
    return found


def _described(condition: Callable[[], object]) -> str:
    try:
        source = " ".join(inspect.getsource(condition).split())
    except (OSError, TypeError):  # a built-in, or an object that is called
        return repr(condition)
    variables = inspect.getclosurevars(condition).nonlocals if inspect.isfunction(condition) else {}
    values = ", ".join(f"{name}={value!r}"[:200] for name, value in variables.items())
    return f"{source} with {values}" if values else source
