"""What a simulator host says, as types; the lines themselves are described in sim_host/host.mjs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson


class SimRecord(NamedTuple):
    """What one seat learns: protocol lines since its last record and, unless it is over, a request."""

    battle: int
    seat: int
    request_number: int
    lines: str
    request: dict[str, Any] | None


class SimError(NamedTuple):
    """A refused command; kind: unavailable (a new request follows) | invalid (the request stays
    open) | stale | crashed | malformed."""

    battle: int | None
    seat: int | None
    request_number: int | None
    kind: str
    message: str


class SimEnd(NamedTuple):
    """reason: win | tie | turn_limit | stopped | crashed."""

    battle: int
    winner_seat: int | None
    turns: int
    reason: str


@dataclass
class HostTick:
    """Everything the host has said since the last poll, in order within each list."""

    records: list[SimRecord] = field(default_factory=list)
    errors: list[SimError] = field(default_factory=list)
    ended: list[SimEnd] = field(default_factory=list)
    pong: Any = None

    def take_line(self, line: bytes) -> dict[str, Any]:
        """Adds what one line says; returns the greeting, if it is one."""
        message = orjson.loads(line)
        self.records += [SimRecord._make(row) for row in message.get("records", ())]
        self.errors += [SimError._make(row) for row in message.get("errors", ())]
        self.ended += [SimEnd._make(row) for row in message.get("ended", ())]
        self.pong = message.get("pong", self.pong)
        hello: dict[str, Any] = message.get("hello", {})
        return hello
