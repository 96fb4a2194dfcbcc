"""ZeroMQ sockets that never block and linger for at most a second, and a poller that waits for them.

One socket is used by one thread. Queue sizes count messages.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Literal, Self

import zmq

from simul.common.errors import ConfigError
from simul.common.protocol.codec import Frame
from simul.common.transport.curve import ClientKeys, CurveAuthenticator, ServerKeys
from simul.common.transport.endpoints import BoundEndpoint, IpcAccess, listen_unix
from simul.common.transport.socket_monitor import ConnectionCounter, ConnectionMonitor, ConnectionState

LINGER_MS = 1000  # time for the last reply to arrive, without a hang at exit
MAX_FRAME_BYTES = 256 * 1024 * 1024
# libzmq reads bytes without the ZMTP 3 greeting as its first protocols: no handshake timeout, self-chosen routing ids.
# It refuses them only on sockets with a ZAP domain; without a ZAP handler the domain has no other effect.
OLD_PROTOCOLS_REFUSED = b"simul"
# frees the file descriptor of a TCP peer whose machine is gone after two minutes (seconds; count)
_KEEPALIVE = {zmq.TCP_KEEPALIVE: 1, zmq.TCP_KEEPALIVE_IDLE: 60, zmq.TCP_KEEPALIVE_INTVL: 15, zmq.TCP_KEEPALIVE_CNT: 4}
VIEW_BYTES = 16 * 1024  # frames of at least this size are not copied
# plain ints and the backend's method: the enums and wrappers of pyzmq are half of a small message's cost
_NOW, _NOW_MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)
_EVENTS, _READABLE = int(zmq.EVENTS), int(zmq.POLLIN)
_send_part = zmq.backend.Socket.send


class Socket:
    """Base of the sockets: options, framing and lifetime. Use as a context manager, or call `close`.

    A peer that announces a frame of more than `most_frame_bytes`, or MAX_FRAME_BYTES, loses its connection.
    """

    def __init__(
        self, kind: int, endpoint: str, *, queue: int, context: zmq.Context[zmq.Socket[bytes]] | None = None,
        most_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> None:  # fmt: skip
        self.endpoint = endpoint
        self.raw: zmq.Socket[bytes] = (context or zmq.Context.instance()).socket(kind)
        self.raw.setsockopt(zmq.LINGER, LINGER_MS)
        self.raw.setsockopt(zmq.SNDHWM, queue)
        self.raw.setsockopt(zmq.RCVHWM, queue)
        self.raw.setsockopt(zmq.IPV6, int("[" in endpoint))
        self.raw.setsockopt(zmq.MAXMSGSIZE, min(most_frame_bytes, MAX_FRAME_BYTES))
        self.raw.setsockopt(zmq.RECONNECT_IVL, 50)
        self.raw.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
        self.bound: list[BoundEndpoint] = []

    def _connect(self) -> None:
        try:
            self.raw.connect(self.endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise ConfigError(f"The endpoint {self.endpoint} cannot be reached: {_error_text(error)}.") from None

    def _bind(self, *, curve: bool = False, access: IpcAccess = "owner") -> None:
        """Bind the endpoint that the socket was made for. Raises ConfigError, and closes it."""
        if not curve:
            self.raw.zap_domain = OLD_PROTOCOLS_REFUSED
        for option, value in _KEEPALIVE.items():
            self.raw.setsockopt(option, value)
        self._curve, self._access = curve, access
        try:
            bound = self.bind_also(self.endpoint)
            self.endpoint = bound if self.endpoint.endswith(":*") else self.endpoint
        except ConfigError:
            self.close()
            raise

    def bind_also(self, endpoint: str) -> str:
        """Bind a bound socket to another endpoint as well. Returns it, with the port for `*`. Raises ConfigError."""
        self.bound.append(BoundEndpoint(endpoint, self._bind_raw, curve=self._curve))
        return self.raw.getsockopt_string(zmq.LAST_ENDPOINT)

    def _bind_raw(self, endpoint: str) -> None:
        """Raises OSError. libzmq gets an ipc socket that already listens: its own would have the umask's mode."""
        ours = sys.platform != "win32" and endpoint.startswith("ipc://")
        self.raw.setsockopt(zmq.USE_FD, listen_unix(endpoint, self._access).detach() if ours else -1)
        try:
            self.raw.bind(endpoint)
        except zmq.ZMQError as error:
            raise OSError(error.errno, _error_text(error)) from None

    def _receive(self) -> list[Frame] | None:
        """Small frames are copied; large ones are views that keep the library's message alive."""
        raw = self.raw
        if not int(raw.get(_EVENTS)) & _READABLE:  # much cheaper than the exception
            return None
        part = raw.recv(_NOW, False)
        frames: list[Frame] = [part.bytes]
        while part.more:
            part = raw.recv(0, False)
            frames.append(part.bytes if len(part) < VIEW_BYTES else part.buffer.toreadonly())
        return frames

    def _send(self, frames: Sequence[Frame]) -> bool:
        try:
            send_parts(self.raw, frames)
        except zmq.Again:
            return False
        return True

    def close(self) -> None:
        """Close the socket; queued messages are sent for at most a second."""
        self.raw.close()
        for bound in self.bound:
            bound.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _error_text(error: zmq.ZMQError) -> str:
    """The error without the address that pyzmq adds to `strerror`."""
    return zmq.strerror(error.errno or 0)


def send_parts(raw: zmq.Socket[bytes], parts: Sequence[Frame]) -> None:
    """Send all parts or none, without waiting: only the first can fail. Raises zmq.ZMQError."""
    for part in parts[:-1]:
        _send_part(raw, part, _NOW_MORE)
    _send_part(raw, parts[-1], _NOW)


POLL_PAUSE_SEC = 30e-6  # short enough to add no latency, long enough to yield the core


class Poller:
    """Waits until a socket or a file descriptor is readable."""

    def __init__(self, sockets: Iterable[Socket] = ()) -> None:
        self._poller = zmq.Poller()
        self._files: set[int] = set()
        for socket in sockets:
            self._poller.register(socket.raw, zmq.POLLIN)

    def set_files(self, files: Iterable[int]) -> None:
        """Watch exactly these file descriptors besides the sockets."""
        wanted = set(files)
        for file in self._files - wanted:
            self._poller.unregister(file)
        for file in wanted - self._files:
            self._poller.register(file, zmq.POLLIN)
        self._files = wanted

    def wait(self, timeout_sec: float) -> bool:
        """True when something is readable; False after `timeout_sec` (whole milliseconds, rounded up)."""
        return bool(self._poller.poll(int(-(-timeout_sec * 1000 // 1))))

    def wait_briefly(self, timeout_sec: float) -> bool:
        """`wait` with sub-millisecond precision: the last millisecond is polled every POLL_PAUSE_SEC."""
        deadline = time.monotonic() + timeout_sec
        while (left := deadline - time.monotonic()) > 0:
            if self._poller.poll(int(left * 1000)):
                return True
            time.sleep(POLL_PAUSE_SEC)
        return bool(self._poller.poll(0))


HANDSHAKE_MS = 5000  # a silent connection holds its file descriptor for at most this long


class RouterSocket(Socket):
    """Bound; talks to many peers by routing id. With `keys`, CURVE encrypts and admits listed public keys only.

    `counted`: `connections` counts opened, failed and closed connections. `access`: who may connect over ipc.
    `most_frame_bytes`: of a frame that a peer sends; libzmq closes the connection before it reads and decrypts more.
    """

    def __init__(
        self, endpoint: str, *, queue: int = 1000, keys: ServerKeys | None = None, counted: bool = False,
        access: IpcAccess = "owner", most_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> None:  # fmt: skip
        self.connections: ConnectionCounter | None = None
        self.authenticator = None if keys is None else CurveAuthenticator(keys)
        context = self.authenticator.context if self.authenticator else None
        super().__init__(zmq.ROUTER, endpoint, queue=queue, context=context, most_frame_bytes=most_frame_bytes)
        self.raw.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self.raw.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
        if self.authenticator is not None:
            self.authenticator.protect(self.raw)
        if counted:
            self.connections = ConnectionCounter(self.raw)
        self._bind(curve=keys is not None, access=access)

    def close(self) -> None:
        """Close the socket; queued messages are sent for at most a second."""
        if self.connections is not None:
            self.connections.close()
        super().close()
        if self.authenticator is not None:
            self.authenticator.close()

    def send(self, peer: bytes, frames: Sequence[Frame]) -> bool:
        """Send without waiting. False: the peer is gone or does not read, and the message is dropped."""
        return self.deliver(peer, frames) == "sent"

    def deliver(self, peer: bytes, frames: Sequence[Frame]) -> Literal["sent", "full", "gone"]:
        """Send without waiting. The message is dropped if the peer's queue is `full` or the peer is `gone`."""
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
        """(peer, frames) of the next message, or None."""
        frames = self._receive()
        return None if frames is None else (bytes(frames[0]), frames[1:])


class DealerSocket(Socket):
    """Connected; talks to one RouterSocket. `watch`: record events for `connection_state` and `reconnections`."""

    def __init__(
        self, endpoint: str, *, queue: int = 1000, keys: ClientKeys | None = None, watch: bool = False
    ) -> None:
        super().__init__(zmq.DEALER, endpoint, queue=queue)
        if keys is not None:
            keys.apply(self.raw)
        self._monitor = ConnectionMonitor(self.raw) if watch else None
        self._connect()

    def connection_state(self) -> ConnectionState:
        """State of the connection so far; needs `watch`."""
        assert self._monitor is not None, "made without watch=True"
        return self._monitor.state()

    def reconnections(self) -> int:
        """How often the connection was lost and made again so far; needs `watch`."""
        assert self._monitor is not None, "made without watch=True"
        return self._monitor.reconnections()

    def stop_watching(self) -> None:
        """Record no more events."""
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None

    def close(self) -> None:
        """Close the socket; queued messages are sent for at most a second."""
        self.stop_watching()
        super().close()

    def send(self, frames: Sequence[Frame]) -> bool:
        """Send without waiting. False: the queue is full and the message is dropped."""
        return self._send(frames)

    def receive(self) -> list[Frame] | None:
        """Frames of the next message, or None."""
        return self._receive()


class PushSocket(Socket):
    """Connected, one way: sends reports, and drops them while no receiver reads."""

    def __init__(self, endpoint: str, *, queue: int = 100, keys: ClientKeys | None = None) -> None:
        super().__init__(zmq.PUSH, endpoint, queue=queue)
        if keys is not None:
            keys.apply(self.raw)
        self._connect()

    def send(self, frames: Sequence[Frame]) -> bool:
        """Send without waiting. False: the queue is full and the message is dropped."""
        return self._send(frames)


class PullSocket(Socket):
    """Bound, one way: receives reports. With `keys`, CURVE encrypts and admits listed public keys only."""

    def __init__(self, endpoint: str, *, queue: int = 1000, keys: ServerKeys | None = None) -> None:
        self._authenticator = None if keys is None else CurveAuthenticator(keys)
        super().__init__(
            zmq.PULL, endpoint, queue=queue, context=self._authenticator.context if self._authenticator else None
        )
        if self._authenticator is not None:
            self._authenticator.protect(self.raw)
            self.raw.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
        self._bind(curve=keys is not None)

    def close(self) -> None:
        """Close the socket."""
        super().close()
        if self._authenticator is not None:
            self._authenticator.close()

    def receive(self) -> list[Frame] | None:
        """Frames of the next message, or None."""
        return self._receive()


@contextmanager
def probe_bind(endpoint: str, *, curve: bool = False) -> Iterator[None]:
    """Bind `endpoint` within the block, to check that it can be bound. Raises ConfigError."""
    with Socket(zmq.ROUTER, endpoint, queue=1) as socket:
        socket._bind(curve=curve)
        yield
        # unbind now; `close` alone lets the context unbind later
        socket.raw.unbind(socket.raw.getsockopt_string(zmq.LAST_ENDPOINT))
