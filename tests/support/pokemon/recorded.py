"""Battles recorded from the real simulator: what each seat was told, in order.

Those of the golden vectors, and `situations/`: short ones, each of one rare situation, one seat a line:
{"battle": n, "seat": 0|1, "records": [[lines, request|null], ...]}.
"""

from __future__ import annotations

import fnmatch
import gzip
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from simul.env_worker.games.pokemon.encoding.actions import Choices, legal_choices
from simul.env_worker.games.pokemon.encoding.encoder import SeatEncoder
from simul.env_worker.games.pokemon.source.request_steps import PreviewSteps
from simul.env_worker.games.pokemon.tables.layout import PLAIN, Extras
from tests.support.pokemon.vectors import NAMES, read_vectors

FOLDER = ROOT / "tests" / "golden" / "pokemon"


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


def replay(seat: RecordedSeat) -> Iterator[tuple[SeatBattle, dict[str, Any]]]:
    """The seat's battle at each of its requests, a team preview left out."""
    battle = SeatBattle(seat.role, seat.gen)
    for lines, request in seat.records:
        if request is None:
            continue
        battle.feed(lines)
        if "teamPreview" not in request:
            battle.sync(request)
            yield battle, request


def battle_of(gen: int, *lines: str) -> SeatBattle:
    """The first seat's battle of Absol against Snorlax, told these lines."""
    battle = SeatBattle("p1", gen)
    starts = ("|switch|p1a: Absol|Absol, L80, M|100/100", "|switch|p2a: Snorlax|Snorlax, L80, M|100/100")
    battle.feed("\n".join((*starts, *lines)))
    assert battle.parse_errors == {}
    return battle


class Encoded(NamedTuple):
    """A request, and what the seat sees at it: float16 [D]."""

    battle: SeatBattle
    request: dict[str, Any]
    choices: Choices
    row: NDArray[np.float16]


def encoded(seat: RecordedSeat, extras: Extras = PLAIN) -> Iterator[Encoded]:
    """The same, written by one encoder."""
    encoder = None
    for battle, request in replay(seat):
        encoder = encoder or SeatEncoder(battle, seat.gen, extras)
        choices = legal_choices(request, battle.position)
        yield Encoded(battle, request, choices, encoder.encode(request, choices))


def preview_of(seat: RecordedSeat) -> PreviewSteps:
    """What a seat of a format with teams is asked first."""
    lines, request = seat.records[0]
    assert request is not None
    battle = SeatBattle(seat.role, seat.gen)
    battle.feed(lines)
    return PreviewSteps(battle, seat.gen, request)
