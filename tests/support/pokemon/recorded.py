"""Battles recorded from the real simulator: what each seat was told, in order.

Those of the golden vectors, and `situations/`: short ones, each of one rare situation, one seat a line:
{"battle": n, "seat": 0|1, "records": [[lines, request|null], ...]}.
"""

from __future__ import annotations

import fnmatch
import gzip
from functools import cache
from typing import Any, NamedTuple

import orjson

from simul.common.runtime.installation import ROOT
from tests.support.pokemon.vectors import NAMES, read_vectors

FOLDER = ROOT / "tests" / "golden" / "pokemon"
TEAMS = FOLDER / "teams"


class RecordedSeat(NamedTuple):
    format: str
    battle: int
    seat: int
    records: list[tuple[str, dict[str, Any] | None]]

    @property
    def gen(self) -> int:
        return int(self.format[3])

    @property
    def role(self) -> str:
        return f"p{self.seat + 1}"


@cache
def recorded_seats(pattern: str = "gen?randombattle") -> tuple[RecordedSeat, ...]:
    """Every seat of the golden vectors whose names match, or of `situations/`."""
    seats = [
        RecordedSeat(vectors.head.format, seat.battle, seat.seat, [(one.lines, one.request) for one in seat.records])
        for vectors in map(read_vectors, fnmatch.filter(NAMES, pattern))
        for seat in vectors.seats
    ]
    for path in sorted(FOLDER.glob(f"{pattern}.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            seats.append(RecordedSeat(path.name.split(".")[0], **orjson.loads(line)))
    assert seats
    return tuple(seats)
