"""Sockets that never block, never linger for ever, never steal an endpoint.

One socket is used by one thread. Sizes of queues are in messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import zmq

from simul.common.protocol.codec import Frame
from simul.common.transport.base import Socket, send_parts
from simul.common.transport.curve import ClientKeys, Doorkeeper, ServerKeys
from simul.common.transport.endpoints import IpcAccess
from simul.common.transport.watch import ConnectionCounts, ConnectionWatch, Fate

HANDSHAKE_MS = 5000  # who connects and then says nothing holds a file descriptor no longer


class RouterSocket(Socket):
    """Bound; talks to many peers by routing id. With `keys` it lets in those whose public key is listed, encrypted.

    `counted`: what becomes of its connections is counted, in `connections`. `access`: who may connect over ipc.
    """

    def __init__(
        self, endpoint: str, *, queue: int = 1000, keys: ServerKeys | None = None, counted: bool = False,
        access: IpcAccess = "owner",
    ) -> None:  # fmt: skip
        self.connections: ConnectionCounts | None = None
        self.doorkeeper = None if keys is None else Doorkeeper(keys)
        super().__init__(
            zmq.ROUTER, endpoint, queue=queue, context=self.doorkeeper.context if self.doorkeeper else None
        )
        self.raw.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self.raw.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
        if self.doorkeeper is not None:
            self.doorkeeper.guard(self.raw)
        if counted:
            self.connections = ConnectionCounts(self.raw)
        self._bind(curve=keys is not None, access=access)

    def close(self) -> None:
        """Close the socket; what is queued goes out for at most a second."""
        if self.connections is not None:
            self.connections.close()
        super().close()
        if self.doorkeeper is not None:
            self.doorkeeper.close()

    def send(self, peer: bytes, frames: Sequence[Frame]) -> bool:
        """Send without waiting. False when the peer is gone or does not read: the message is dropped."""
        return self.deliver(peer, frames) == "sent"

    def deliver(self, peer: bytes, frames: Sequence[Frame]) -> Literal["sent", "full", "gone"]:
        """Send without waiting. Dropped when the peer's queue is `full`, because it does not read, or it is `gone`."""
        try:
            send_parts(self.raw, [peer, *frames])
        except zmq.ZMQError as error:
            if error.errno == zmq.EAGAIN:
                return "full"
            if error.errno == zmq.EHOSTUNREACH:
                return "gone"
            raise
        return "sent"

    def receive(self) -> tuple[bytes, list[Frame]] | None:
        """(peer, frames) of the next message, or None when nothing waits."""
        frames = self._receive()
        return None if frames is None else (bytes(frames[0]), frames[1:])


class DealerSocket(Socket):
    """Connected; talks to one RouterSocket. `watch`: what becomes of the connection can be asked for."""

    def __init__(
        self, endpoint: str, *, queue: int = 1000, keys: ClientKeys | None = None, watch: bool = False
    ) -> None:
        super().__init__(zmq.DEALER, endpoint, queue=queue)
        if keys is not None:
            keys.show(self.raw)
        self._watch = ConnectionWatch(self.raw) if watch else None
        self._connect()

    def fate(self) -> Fate:
        """What became of the connection so far."""
        assert self._watch is not None, "made without watch=True"
        return self._watch.fate()

    def close(self) -> None:
        """Close the socket; what is queued goes out for at most a second."""
        if self._watch is not None:
            self._watch.close()
        super().close()

    def send(self, frames: Sequence[Frame]) -> bool:
        """Send without waiting. False when the queue is full: the message is dropped."""
        return self._send(frames)

    def receive(self) -> list[Frame] | None:
        """Frames of the next message, or None when nothing waits."""
        return self._receive()


class PushSocket(Socket):
    """Connected; sends figures one way and drops them when nobody reads."""

    def __init__(self, endpoint: str, *, queue: int = 100) -> None:
        super().__init__(zmq.PUSH, endpoint, queue=queue)
        self._connect()

    def send(self, frames: Sequence[Frame]) -> bool:
        """Send without waiting. False when nobody reads."""
        return self._send(frames)


class PullSocket(Socket):
    """Bound; receives figures."""

    def __init__(self, endpoint: str, *, queue: int = 1000) -> None:
        super().__init__(zmq.PULL, endpoint, queue=queue)
        self._bind()

    def receive(self) -> list[Frame] | None:
        """Frames of the next message, or None when nothing waits."""
        return self._receive()


@contextmanager
def held(endpoint: str, *, curve: bool = False) -> Iterator[None]:
    """Bound, to nobody's use, for the time of the block: to know that it can be. Raises ConfigError."""
    with Socket(zmq.ROUTER, endpoint, queue=1) as socket:
        socket._bind(curve=curve)
        yield
        socket.raw.unbind(socket.raw.getsockopt_string(zmq.LAST_ENDPOINT))  # now, and not when the context finds time
