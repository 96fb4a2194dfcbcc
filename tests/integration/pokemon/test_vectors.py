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
from simul.env_worker.games.pokemon.host.tally import RewardFacts
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.tables.layout import Extras
from tests.support.pokemon import vectors as golden
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


def hosted(sets: list[Vectors], extras: Extras, doubles: bool = False) -> Iterator[SeenSeat]:
    """Each seat of each set as the host's views see it."""
    jobs: list[object] = []
    for vectors in sets:
        tables = encoder_tables(vectors.head.gen, extras, doubles)
        jobs.append({"tables": tables})
        for seat in vectors.seats:
            told = [(*record[:3], [one.action for one in record.decisions]) for record in seat.records]
            jobs.append({"seat": seat.seat, "free_switches": seat.free_switches, "records": told})
    done = subprocess.run([find_node().path, RUNNER], input=b"\n".join(map(orjson.dumps, jobs)), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    tick = HostTick(tables["layout"]["size"], tables["layout"]["num_actions"])
    tick.read_messages(bytearray(done.stdout))
    assert not tick.parse_errors
    rows: dict[int, list[Seen]] = defaultdict(list)
    for row in tick.rows:
        rows[row.battle].append(Seen(row.observation, row.facts, row.mask))
    for end in tick.ended:
        yield SeenSeat(rows[end.battle], end.facts(0))


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


def test_doubles() -> None:
    found = [read_vectors(name) for name in DOUBLES]
    seats = hosted(found, Extras(0), doubles=True)
    for vectors in found:
        compare(vectors, vectors.columns(0, False), seats)
