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

from simul.common.protocol.decisions import Decision
from simul.env_worker.games.pokemon.encoding.host_tables import encoder_tables
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, HostTick
from simul.env_worker.games.pokemon.host.tally import RewardFacts
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.source.double_seat import DoubleSeat
from simul.env_worker.games.pokemon.source.rewards import RewardWeights
from simul.env_worker.games.pokemon.tables.layout import Extras, observation_size
from tests.support.pokemon import vectors as golden
from tests.support.pokemon.recorded_doubles import Listening
from tests.support.pokemon.vectors import DOUBLES, SINGLES, Vectors, read_vectors

RUNNER = Path(golden.__file__).with_suffix(".mjs")


class Seen(NamedTuple):
    """A decision as the tree makes it now."""

    observation: NDArray[np.float16]
    facts: RewardFacts
    mask: NDArray[np.uint8]


class SeenSeat(NamedTuple):
    """A seat as the tree makes it now; final: where the last line left it."""

    decisions: list[Seen]
    final: RewardFacts | None


def compare(vectors: Vectors, columns: NDArray[np.intp], seats: Iterator[SeenSeat]) -> None:
    """Fails at the first decision that differs, and names what differs."""
    for seat in vectors.seats:
        found = next(seats)
        expected = [(place, one) for place, record in enumerate(seat.records) for one in record.decisions]
        assert len(found.decisions) == len(expected)
        for row, ((place, decision), now) in enumerate(zip(expected, found.decisions), start=seat.first):
            where = f"{vectors.head.format}, battle {seat.battle}, seat {seat.seat}, record {place}"
            told = vectors.differences(row, columns, now.observation.view(np.uint16))
            assert not told, f"{where}: {told}"
            assert (now.facts, "".join(map(str, now.mask.tolist()))) == (decision.facts, decision.mask), where
        if seat.records[-1].request is None:
            assert found.final == seat.records[-1].final


def hosted(sets: list[Vectors], extras: Extras) -> Iterator[SeenSeat]:
    """Each seat of each set as the host's views see it."""
    jobs: list[object] = []
    for vectors in sets:
        jobs.append({"tables": encoder_tables(vectors.head.gen, extras)})
        for seat in vectors.seats:
            told = [(*record[:3], [one.action for one in record.decisions]) for record in seat.records]
            jobs.append({"seat": seat.seat, "free_switches": seat.free_switches, "records": told})
    done = subprocess.run([find_node().path, RUNNER], input=b"\n".join(map(orjson.dumps, jobs)), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    tick = HostTick(observation_size(extras))
    tick.read_messages(bytearray(done.stdout))
    assert not tick.parse_errors
    rows: dict[int, list[Seen]] = defaultdict(list)
    for row in tick.rows:
        rows[row.battle].append(Seen(row.observation, row.facts, row.mask))
    for end in tick.ended:
        yield SeenSeat(rows[end.battle], end.facts(0))


class DoubleWitness(DoubleSeat):
    """Keeps the facts of its last decision."""

    def _facts(self, standing):
        self.facts = super()._facts(standing)
        return self.facts


def read_doubles(vectors: Vectors) -> Iterator[SeenSeat]:
    """Each seat as this process sees it."""
    for one in vectors.seats:
        weights = RewardWeights(knockout=1.0, free_switches=one.free_switches)
        seat = DoubleWitness(0, one.seat, 0, vectors.head.gen, "", 0, weights)
        found = []
        for record in one.records:
            seat.read_lines(record.lines, record.request)
            seat.redo = record.refused
            decision: Decision | None = record.request and seat.decide(0, record.request)
            for chosen in record.decisions:
                found.append(Seen(decision.observation, seat.facts, decision.mask))
                assert seat.answer(Listening(), 0, chosen.action)
                decision = seat.follow_up()
        yield SeenSeat(found, seat._final(BattleEnd(0, None, seat.battle.turn, "")))


@pytest.mark.parametrize(("attackers", "sets"), [(0, False), (3, True), (6, True)])
def test_singles(attackers: int, sets: bool) -> None:
    """`sets` only of formats whose sets are known."""
    for known in (True, False):
        extras = Extras(attackers, sets and known)
        found = [read_vectors(name) for name in SINGLES if ("random" in name) is known]
        assert found
        seats = hosted(found, extras)
        for vectors in found:
            compare(vectors, vectors.columns(*extras), seats)


@pytest.mark.parametrize("name", DOUBLES)
def test_doubles(name: str) -> None:
    vectors = read_vectors(name)
    compare(vectors, vectors.columns(0, False), read_doubles(vectors))
