"""Holds a server's forward, so that a test knows what waits behind it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.stand import PATIENCE_SEC, Stand


class Stall:
    """`inside`: the forward has been reached; `go`: let it through."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.go = threading.Event()

    def wait_until_inside(self) -> None:
        assert self.inside.wait(PATIENCE_SEC), "no batch came"


@contextmanager
def stalled(stand: Stand) -> Iterator[Stall]:
    """The learner's policy stands still at its next forward, until `go` is set or the block ends."""
    engine, stall = stand.server._housekeeping._policies["learner"].engine, Stall()
    forward = engine.forward

    def held(rows: int):
        stall.inside.set()
        assert stall.go.wait(2 * PATIENCE_SEC)
        return forward(rows)

    engine.forward = held
    try:
        yield stall
    finally:
        stall.go.set()
        engine.forward = forward


@contextmanager
def slowed(stand: Stand, forward_sec: float) -> Iterator[None]:
    """Every forward of the learner's policy takes so much longer."""
    engine = stand.server._housekeeping._policies["learner"].engine
    forward = engine.forward

    def slower(rows: int):
        time.sleep(forward_sec)
        return forward(rows)

    engine.forward = slower
    try:
        yield
    finally:
        engine.forward = forward


@contextmanager
def poisoned(stand: Stand, marker: float, error: type[Exception] = RuntimeError) -> Iterator[None]:
    """The network raises at every batch that holds an observation whose first number is `marker`."""
    engine = stand.server._housekeeping._policies["learner"].engine
    run = engine._backend.run

    def raising(observation, mask, state):
        if (observation[:, 0] == marker).any():
            raise error("poisoned")
        return run(observation, mask, state)

    engine._backend.run = raising
    try:
        yield
    finally:
        engine._backend.run = run
