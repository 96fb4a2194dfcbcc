"""Waiting for the very thing that a test asserts; the time-out names what did not come."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable

PATIENCE_SEC = 100.0  # for what nobody has promised a time: only a test that fails waits so long
POLL_SEC = 0.01


def wait_for(condition: Callable[[], object], timeout_sec: float = PATIENCE_SEC) -> None:
    """Wait until `condition()` is true; AssertionError with its source and its variables where it never is."""
    deadline = time.monotonic() + timeout_sec
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_sec:g} s: {_described(condition)}"
        time.sleep(POLL_SEC)


def _described(condition: Callable[[], object]) -> str:
    try:
        source = " ".join(inspect.getsource(condition).split())
    except (OSError, TypeError):  # a built-in, or an object that is called
        return repr(condition)
    variables = inspect.getclosurevars(condition).nonlocals if inspect.isfunction(condition) else {}
    values = ", ".join(f"{name}={value!r}"[:200] for name, value in variables.items())
    return f"{source} with {values}" if values else source
