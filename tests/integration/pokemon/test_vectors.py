"""Every observation is what it was: rows, masks and facts of the golden vectors, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from simul.env_worker.games.pokemon.tables.layout import Extras
from tests.support.pokemon.vectors import DOUBLES, SINGLES, Seat, Vectors, read_vectors
from tests.support.pokemon.views import SeatToSee, SeenSeat, Told, Views


def compare(vectors: Vectors, columns: NDArray[np.intp], found: list[SeenSeat]) -> None:
    """Fails at the first decision that differs, and names what differs."""
    for seat, now in zip(vectors.seats, found, strict=True):
        expected = [(place, one) for place, record in enumerate(seat.records) for one in record.decisions]
        assert (now.errors, now.crashed) == ({}, False)
        for row, ((place, decision), one) in enumerate(zip(expected, now.decisions, strict=True), start=seat.first):
            where = f"{vectors.head.format}, battle {seat.battle}, seat {seat.seat}, record {place}"
            told = vectors.differences(row, columns, one.observation.view(np.uint16))
            assert not told, f"{where}: {told}"
            assert (one.facts, "".join(map(str, one.mask.tolist()))) == (decision.facts, decision.mask), where
        assert now.final == seat.records[-1].final


def check(views: Views, names: list[str], extras: Extras) -> None:
    for vectors in map(read_vectors, names):
        seats = [
            SeatToSee(vectors.head.format, one.seat, told(one), extras, one.free_switches) for one in vectors.seats
        ]
        compare(vectors, vectors.columns(*extras), list(views.seen(seats)))


def told(seat: Seat) -> list[Told]:
    return [Told(*record[:3], [decision.action for decision in record.decisions]) for record in seat.records]


@pytest.mark.parametrize(
    ("attackers", "sets"),
    [(0, False), (3, True), pytest.param(6, True, marks=pytest.mark.slow)],  # .ci/long runs it
)
def test_singles(views: Views, attackers: int, sets: bool) -> None:
    """`sets` only of formats whose sets are known."""
    for known in (True, False):
        check(views, [name for name in SINGLES if ("random" in name) is known], Extras(attackers, sets and known))


def test_doubles(views: Views) -> None:
    check(views, DOUBLES, Extras(0))
