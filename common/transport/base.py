"""What all our sockets share: their options, and how frames go in and out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import zmq

from common.codec import Frame
from common.errors import ConfigError
from common.transport.endpoints import check_endpoint, files_of, lock_ipc, make_folder_of

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
        self._lock = -1
        self.files: tuple[str, ...] = ()  # of a bound endpoint: without them nobody new would find it

    def _connect(self) -> None:
        try:
            self.raw.connect(self.endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise ConfigError(f"The endpoint {self.endpoint} cannot be reached: {_in_words(error)}.") from None

    def _bind(self, *, curve: bool = False) -> None:
        try:
            check_endpoint(self.endpoint, curve=curve)
            self._lock = lock_ipc(self.endpoint)
        except ConfigError:
            self.close()
            raise
        if not curve:
            self.raw.zap_domain = OLD_PROTOCOLS_REFUSED
        for option, value in _KEEPALIVE.items():
            self.raw.setsockopt(option, value)
        try:
            self.raw.bind(self.endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise ConfigError(
                f"The endpoint {self.endpoint} cannot be bound: {_in_words(error)}. "
                "Another run may use it: stop that one (`simul down`; a `simul serve` by Ctrl-C) or choose another "
                "endpoint."
            ) from None
        self.files = files_of(self.endpoint)

    def bind_again(self) -> None:
        """After `files` vanished: whoever comes finds us again, open connections live on.

        Raises:
            ConfigError: they cannot be made, or another process owns the endpoint now.
        """
        former, self._lock = self._lock, -1
        if former >= 0:
            os.close(former)
        make_folder_of(self.endpoint)
        self._lock = lock_ipc(self.endpoint)
        if os.path.exists(self.files[0]):  # the lock alone was gone
            return
        try:
            self.raw.bind(self.endpoint)
        except zmq.ZMQError as error:
            raise ConfigError(f"The endpoint {self.endpoint} cannot be bound: {_in_words(error)}.") from None

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
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

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
