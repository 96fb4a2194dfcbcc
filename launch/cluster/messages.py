"""What the supervisor and its agents on other machines tell each other, as frames in a stream of bytes.

A frame is its length (4 bytes, little-endian) and a MessagePack map with its type. Keys and the run's token travel in
WriteFiles, so the channel has to be as secret as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

LENGTH_BYTES = 4
FAILED_START = 127  # exit code in News of a process that could not be started
MOST_BYTES = 64 * 1024 * 1024  # of a frame
M = TypeVar("M")


class _Message(msgspec.Struct, frozen=True, tag_field="type", kw_only=True):
    pass


class WriteFiles(_Message, frozen=True, tag="files"):
    """Write these files below the run directory of the agent; all but their owner's rights are removed."""

    files: dict[str, bytes]


class StartRole(_Message, frozen=True, tag="start"):
    """Start a role process. `first`: a module and its arguments that must exit with 0 before; empty: none."""

    role: str
    index: int
    run_id: int
    threads: int
    arguments: tuple[str, ...] = ()
    first: tuple[str, ...] = ()


class StopRole(_Message, frozen=True, tag="stop"):
    """Ask a process to drain, save and exit."""

    run_id: int


class KillRole(_Message, frozen=True, tag="kill"):
    """Kill a process and everything that it started."""

    run_id: int


class Leave(_Message, frozen=True, tag="leave"):
    """Kill everything, and end. `remove`: the agent's run directory goes, too; else it is renamed to `kept-...`."""

    remove: bool


ToAgent = WriteFiles | StartRole | StopRole | KillRole | Leave


class AgentHello(_Message, frozen=True, tag="hello"):
    """The first message of an agent. `facts`: versions by name, which must be the same on all machines."""

    root: str  # its run directory
    machine: str
    facts: dict[str, str]


class Usage(msgspec.Struct, frozen=True, array_like=True):
    """Processor (percent of a core, and seconds so far) and memory (MiB) of a process and of its descendants."""

    cpu_percent: float
    rss_mb: float
    children_rss_mb: float
    cpu_sec: float = 0.0


class News(_Message, frozen=True, tag="news"):
    """Sent twice a second, and at once where a process ended. Processes are named by their run_id.

    `started`: (pid, create_time); `exits`: exit codes; `logs`: (file name, bytes appended to it). The log of a process
    comes before its exit code.
    """

    started: dict[int, tuple[int, float]] = {}
    exits: dict[int, int] = {}
    usage: dict[int, Usage] = {}
    logs: list[tuple[str, bytes]] = []


FromAgent = AgentHello | News
_encoder = msgspec.msgpack.Encoder()


def encode_frame(message: ToAgent | FromAgent) -> bytes:
    """A message with its length."""
    body = _encoder.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


class FrameReader(Generic[M]):
    """Messages out of pieces of a stream. `kind`: the union of the messages that may come."""

    def __init__(self, kind: Any) -> None:
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(kind)
        self._data = b""

    def feed(self, data: bytes) -> Iterator[M]:
        """The messages that `data` completes. Raises ValueError for what is none."""
        self._data += data
        while len(self._data) >= LENGTH_BYTES:
            size = int.from_bytes(self._data[:LENGTH_BYTES], "little")
            if size > MOST_BYTES:
                raise ValueError(f"expected a frame of at most {MOST_BYTES} bytes, got one of {size}")
            if len(self._data) < LENGTH_BYTES + size:
                return
            body, self._data = self._data[LENGTH_BYTES : LENGTH_BYTES + size], self._data[LENGTH_BYTES + size :]
            yield self._decoder.decode(body)
