"""Every observation is what it was: rows, masks and facts of the golden vectors, to the bit."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
import pytest
from numpy.typing import NDArray

from simul.env_worker.games.pokemon.encoding.host_tables import encoder_tables
from simul.env_worker.games.pokemon.host.host_messages import HostTick
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.source.double_seat import DoubleSeat
from simul.env_worker.games.pokemon.source.rewards import RewardWeights
from simul.env_worker.games.pokemon.tables.layout import Extras, observation_size
from tests.support.pokemon.recorded_doubles import Listening
from tests.support.pokemon.vectors import Facts, Seat, Vectors, names, read_vectors

RUNNER = Path(__file__).parents[2] / "support" / "pokemon" / "vectors.mjs"
SINGLES = [name for name in names() if "doubles" not in name and "vgc" not in name]
DOUBLES = [name for name in names() if name not in SINGLES]


class Seen(NamedTuple):
    """A decision as the tree makes it now; row: its bits."""

    row: NDArray[np.uint16]
    mask: str
    turn: int
    facts: Facts


def compare(vectors: Vectors, columns: NDArray[np.intp], seat: Seat, seen: list[Seen], final: Facts | None) -> None:
    """Fails at the first decision of a seat that differs, and names what differs."""
    expected = [(place, one) for place, record in enumerate(seat.records) for one in record.decisions]
    assert len(seen) == len(expected)
    for row, ((place, decision), now) in enumerate(zip(expected, seen), start=seat.first):
        where = f"{vectors.head.format}, battle {seat.battle}, seat {seat.seat}, record {place}"
        assert not (told := vectors.differences(row, columns, now.row)), f"{where}: {told}"
        assert now.mask == decision.mask, where
        assert (now.turn, *now.facts) == (decision.turn, decision.standing, decision.tally), where
    if seat.records[-1].final is not None:
        assert final == seat.records[-1].final


def hosted(sets: list[Vectors], extras: Extras) -> Iterator[tuple[list[Seen], Facts | None]]:
    """Each seat of each set as the host's views see it."""
    jobs: list[object] = []
    for vectors in sets:
        jobs.append({"tables": encoder_tables(vectors.head.gen, extras)})
        for seat in vectors.seats:
            told = [[record.lines, record.request, [one.action for one in record.decisions]] for record in seat.records]
            jobs.append({"seat": seat.seat, "free_switches": seat.free_switches, "records": told})
    done = subprocess.run([find_node().path, RUNNER], input=b"\n".join(map(orjson.dumps, jobs)), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    tick = HostTick(observation_size(extras))
    tick.read_messages(bytearray(done.stdout))
    assert not tick.parse_errors
    rows = defaultdict(list)
    for row in tick.rows:
        facts = Facts(list(row.facts.standing), list(row.facts.tally))
        rows[row.battle].append(Seen(row.observation.view(np.uint16), bits(row.mask), row.turn, facts))
    for end in tick.ended:
        yield rows[end.battle], end.final[0] and Facts(*map(list, end.final[0]))


def bits(mask: NDArray[np.uint8]) -> str:
    """As the vectors write a mask."""
    return "".join(map(str, mask.tolist()))


class DoubleWitness(DoubleSeat):
    """Keeps the facts of its last decision."""

    def _facts(self, standing):
        self.facts = super()._facts(standing)
        return self.facts


def read_doubles(vectors: Vectors) -> Iterator[tuple[list[Seen], Facts | None]]:
    """Each seat as this process sees it."""
    for one in vectors.seats:
        weights = RewardWeights(knockout=1.0, free_switches=one.free_switches)
        seat = DoubleWitness(0, one.seat, 0, vectors.head.gen, "", 0, weights)
        seen = []
        for record in one.records:
            seat.read_lines(record.lines, record.request)
            seat.redo = record.refused
            decision = record.request and seat.decide(0, record.request)
            for chosen in record.decisions:
                assert decision
                facts = Facts(list(seat.facts.standing), list(seat.facts.tally))
                seen.append(Seen(decision.observation.view(np.uint16), bits(decision.mask), seat.turn, facts))
                assert seat.answer(Listening(), 0, chosen.action)
                decision = seat.follow_up()
        facts = seat._facts(seat._survey())
        yield seen, Facts(list(facts.standing), list(facts.tally))


@pytest.mark.parametrize(("attackers", "sets"), [(0, False), (3, True), (6, True)])
def test_singles(attackers: int, sets: bool) -> None:
    """`sets` only of formats whose sets are known."""
    for known in (True, False):
        extras = Extras(attackers, sets and known)
        found = [read_vectors(name) for name in SINGLES if ("random" in name) is known]
        seen = hosted(found, extras)
        for vectors in found:
            columns = vectors.columns(*extras)
            for seat in vectors.seats:
                compare(vectors, columns, seat, *next(seen))


@pytest.mark.parametrize("name", DOUBLES)
def test_doubles(name: str) -> None:
    vectors = read_vectors(name)
    columns = vectors.columns(0, False)
    for seat, seen in zip(vectors.seats, read_doubles(vectors), strict=True):
        compare(vectors, columns, seat, *seen)
