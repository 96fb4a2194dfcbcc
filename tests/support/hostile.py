"""A peer that speaks ZMTP by hand and is up to no good: messages without an end, frames without a body."""

from __future__ import annotations

import contextlib
import socket
from types import TracebackType
from typing import Self

from tests.support.waiting import PATIENCE_SEC

SIGNATURE = b"\xff" + bytes(8) + b"\x7f"
GREETING = SIGNATURE + b"\x03\x00" + b"NULL".ljust(52, b"\0")
_READY = b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\0"
READY = bytes([4, len(_READY)]) + _READY
EMPTY_AND_MORE = b"\x01\x00"


class HostilePeer:
    """A connection without keys whose handshake is done; blocking, as a thread of an attacker is."""

    def __init__(self, endpoint: str) -> None:
        self.socket = open_line(endpoint)
        self.send(GREETING + READY)
        said = b""
        with contextlib.suppress(ConnectionError):
            while b"READY" not in said and (more := self.socket.recv(4096)):
                said += more

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> bool:
        """False where the other side has hung up."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionError):
            return False
        return True

    def message(self, *frames: bytes) -> bool:
        """A whole message."""
        return self.send(b"".join(frame(body, more=number < len(frames)) for number, body in enumerate(frames, 1)))

    def empty_frames(self, number: int) -> bool:
        """The beginning of a message: so many empty frames, and more to come."""
        return self.send(EMPTY_AND_MORE * number)

    def unfinished_frame(self, size: int, come: int) -> bool:
        """A frame of `size` bytes is announced, `come` of them come."""
        return self.send(b"\x03" + size.to_bytes(8, "big")) and all(
            self.send(bytes(min(1 << 20, come - at))) for at in range(0, come, 1 << 20)
        )

    def hung_up(self) -> bool:
        """Whether the connection is over by now, or within PATIENCE_SEC."""
        try:
            while self.socket.recv(65536):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True


def frame(body: bytes, *, more: bool = False) -> bytes:
    """A frame of ZMTP."""
    if len(body) < 256:
        return bytes([more, len(body)]) + body
    return bytes([2 | more]) + len(body).to_bytes(8, "big") + body


def open_line(endpoint: str) -> socket.socket:
    """A plain connection."""
    if endpoint.startswith("ipc://"):
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(PATIENCE_SEC)
        line.connect(endpoint.removeprefix("ipc://"))
        return line
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_SEC)
