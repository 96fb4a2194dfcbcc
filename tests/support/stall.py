"""Holds a server's forward, so that a test knows what waits behind it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from simul.common.errors import ProtocolError
from simul.common.protocol.codec import Codec, Frame
from simul.common.protocol.messages import TO_SERVER, Hello, Ping
from tests.support.stand import Stand
from tests.support.waiting import PATIENCE_SEC


class Stall:
    """`inside`: the forward has been reached; `go`: let it through."""

    def __init__(self, stand: Stand) -> None:
        self.inside = threading.Event()
        self.go = threading.Event()
        self._stand = stand

    def wait_until_inside(self) -> None:
        assert self.inside.wait(PATIENCE_SEC), "no batch came"

    def wait_until_arrived(self, messages: int) -> None:
        """What was sent takes its time. Reads so many messages in the server's place; it gets them at its next reads.

        What a client sends by the clock is read, too, and not counted. Only while the server is inside the forward: its
        thread owns the socket.
        """
        assert self.inside.is_set()
        assert not self.go.is_set()
        socket, arrived, deadline = self._stand.server._client_socket.socket, deque(), time.monotonic() + PATIENCE_SEC
        receive, counted = socket.receive, 0
        while counted < messages:
            if (message := receive()) is not None:
                arrived.append(message)
                counted += not self._by_the_clock(*message)
            else:
                assert time.monotonic() < deadline, f"{counted} of {messages} messages arrived"
                time.sleep(0.001)
        socket.receive = lambda: arrived.popleft() if arrived else receive()

    def _by_the_clock(self, peer: bytes, frames: list[Frame]) -> bool:
        """A keepalive, or HELLO again because WELCOME was late."""
        try:
            message, _ = Codec[TO_SERVER](TO_SERVER).decode(frames)
        except ProtocolError:
            return False
        again = isinstance(message, Hello) and self._stand.server._client_socket._clients.of_peer(peer) is not None
        return again or message == Ping()


def let_deadlines_pass(stand: Stand) -> None:
    """The server's clock goes 100 s ahead wherever it looks for late rows."""
    intake = stand.server._admission_control
    refuse_expired = intake.refuse_expired
    intake.refuse_expired = lambda now: refuse_expired(now + 100.0)


@contextmanager
def stalled(stand: Stand) -> Iterator[Stall]:
    """The learner's policy stands still at its next forward, until `go` is set or the block ends."""
    engine, stall = stand.server._weight_updates._policies["learner"].engine, Stall(stand)
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
def poisoned(stand: Stand, marker: float, error: type[Exception] = RuntimeError) -> Iterator[None]:
    """The network raises at every batch that holds an observation whose first number is `marker`."""
    engine = stand.server._weight_updates._policies["learner"].engine
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
