"""What all our sockets share: their options, and how frames go in and out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import zmq

from simul.common.protocol.codec import Frame
from simul.common.protocol.errors import ConfigError
from simul.common.transport.bound import BoundEndpoint, listen_unix
from simul.common.transport.endpoints import IpcAccess

LINGER_MS = 1000  # the last reply shall arrive; exit shall not hang
MAX_FRAME_BYTES = 256 * 1024 * 1024
# libzmq takes bytes without the greeting of ZMTP 3 for its first protocols, which know no timeout of a handshake, let
# any stranger name itself, and are refused only where a socket has a domain. Nobody is asked about it: no handler.
OLD_PROTOCOLS_REFUSED = b"simul"
# a TCP peer whose machine is gone holds its file descriptor for two minutes, not for ever (seconds; count)
_KEEPALIVE = {zmq.TCP_KEEPALIVE: 1, zmq.TCP_KEEPALIVE_IDLE: 60, zmq.TCP_KEEPALIVE_INTVL: 15, zmq.TCP_KEEPALIVE_CNT: 4}
VIEW_BYTES = 16 * 1024  # a frame of at least so many is not copied
# plain numbers and the method beneath: half of a small message's cost is what pyzmq does around them
_NOW, _NOW_MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)
_EVENTS, _READABLE = int(zmq.EVENTS), int(zmq.POLLIN)
_send_part = zmq.backend.Socket.send


class Socket:
    """Options that all our sockets share."""

    def __init__(
        self, kind: int, endpoint: str, *, queue: int, context: zmq.Context[zmq.Socket[bytes]] | None = None
    ) -> None:
        self.endpoint = endpoint
        self.raw: zmq.Socket[bytes] = (context or zmq.Context.instance()).socket(kind)
        self.raw.setsockopt(zmq.LINGER, LINGER_MS)
        self.raw.setsockopt(zmq.SNDHWM, queue)
        self.raw.setsockopt(zmq.RCVHWM, queue)
        self.raw.setsockopt(zmq.IPV6, int("[" in endpoint))
        self.raw.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME_BYTES)
        self.raw.setsockopt(zmq.RECONNECT_IVL, 50)
        self.raw.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
        self.bound: list[BoundEndpoint] = []

    def _connect(self) -> None:
        try:
            self.raw.connect(self.endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise ConfigError(f"The endpoint {self.endpoint} cannot be reached: {_in_words(error)}.") from None

    def _bind(self, *, curve: bool = False, access: IpcAccess = "owner") -> None:
        """Bind the endpoint that the socket was made for. Raises ConfigError, and closes it."""
        if not curve:
            self.raw.zap_domain = OLD_PROTOCOLS_REFUSED
        for option, value in _KEEPALIVE.items():
            self.raw.setsockopt(option, value)
        self._curve, self._access = curve, access
        try:
            self.bind_also(self.endpoint)
        except ConfigError:
            self.close()
            raise

    def bind_also(self, endpoint: str) -> None:
        """Bind another endpoint of a socket that is bound. Raises ConfigError."""
        self.bound.append(BoundEndpoint(endpoint, self._bind_raw, curve=self._curve))

    def _bind_raw(self, endpoint: str) -> None:
        """Raises OSError. libzmq is handed an ipc socket that listens already: its own has the umask's permissions."""
        ours = sys.platform != "win32" and endpoint.startswith("ipc://")
        self.raw.setsockopt(zmq.USE_FD, listen_unix(endpoint, self._access).detach() if ours else -1)
        try:
            self.raw.bind(endpoint)
        except zmq.ZMQError as error:
            raise OSError(error.errno, _in_words(error)) from None

    def _receive(self) -> list[Frame] | None:
        """Small frames are copied, large ones stay where the library has them: the message lives as long as a view."""
        raw = self.raw
        if not int(raw.get(_EVENTS)) & _READABLE:  # far cheaper than the exception
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
        """Close the socket; what is queued goes out for at most a second."""
        self.raw.close()
        for bound in self.bound:
            bound.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _in_words(error: zmq.ZMQError) -> str:
    """Without the address, which pyzmq adds to `strerror`."""
    return zmq.strerror(error.errno or 0)


def send_parts(raw: zmq.Socket[bytes], parts: Sequence[Frame]) -> None:
    """All parts or none, without waiting: only the first can be refused. Raises zmq.ZMQError."""
    for part in parts[:-1]:
        _send_part(raw, part, _NOW_MORE)
    _send_part(raw, parts[-1], _NOW)
