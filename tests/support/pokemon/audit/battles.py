"""Battles of the pinned simulator, decision by decision: the observation beside the simulator's own state."""

from __future__ import annotations

import base64
import subprocess
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle, SeatDoubleBattle
from simul.env_worker.games.pokemon.doubles.encoder import DoubleEncoder
from simul.env_worker.games.pokemon.encoding.actions import legal_choices
from simul.env_worker.games.pokemon.encoding.encoder import SeatEncoder
from simul.env_worker.games.pokemon.source.double_seat import DoubleSteps

from simul.env_worker.games.pokemon.formats.spec import generation, is_doubles
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.tables.host_tables import encoder_tables
from tests.support.pokemon.audit.teams import custom_team

RECORDER = Path(__file__).with_name("record.mjs")
Truth = dict[str, Any]
Choices = dict[str, list[str]]  # "p1", "p2" -> words, one for each request


class BattleJob(NamedTuple):
    """A battle to play: both seats by seeded random choices, or by `choices` ("default" after the last)."""

    format: str
    number: int
    teams: tuple[str | None, str | None] = (None, None)
    turns: int = 60
    choices: Choices | None = None


class AuditedRow(NamedTuple):
    """One observation (float16 [D]) and the simulator's state of that moment, see record.mjs."""

    job: BattleJob
    seat: int
    slot: int  # the one that decides: 1 only in doubles
    observation: NDArray[np.float16]
    request: dict[str, Any]
    truth: Truth

    @property
    def place(self) -> str:
        """Where to look for this row."""
        return f"{self.job.format} {self.job.number}, seat {self.seat}, turn {self.truth['turn']}"


def random_battles(battle_format: str, count: int, first: int = 0) -> list[BattleJob]:
    """Battles of a format that draws its teams."""
    return [BattleJob(battle_format, number) for number in range(first, first + count)]


def custom_battles(battle_format: str, count: int, first: int = 0) -> list[BattleJob]:
    """Battles of teams that no validator has seen."""
    gen = generation(battle_format)
    return [
        BattleJob(battle_format, n, (custom_team(gen, (n, 0)), custom_team(gen, (n, 1))))
        for n in range(first, first + count)
    ]


def audited_rows(jobs: Iterable[BattleJob]) -> Iterator[AuditedRow]:
    """Plays the battles; every decision of both seats but team previews."""
    jobs = list(jobs)
    process = subprocess.Popen([find_node().path, str(RECORDER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    writer = threading.Thread(target=_send, args=(process.stdin, jobs))
    writer.start()
    with process:
        for job in jobs:
            yield from _battle(job, process.stdout)
    writer.join()
    assert process.returncode == 0, "the recorder failed, see its stderr"


def _send(pipe: Any, jobs: list[BattleJob]) -> None:
    sent = 0
    with pipe:
        for job in jobs:
            if generation(job.format) != sent:
                sent = generation(job.format)
                pipe.write(orjson.dumps({"tables": encoder_tables(sent)}) + b"\n")
            pipe.write(orjson.dumps(_command(job)) + b"\n")


def _command(job: BattleJob) -> dict[str, Any]:
    seeds = [f"{job.number},{seat},3,4" for seat in (1, 2)]
    command = {"format": job.format, "seed": [job.number, 2, 3, 4], "team_seeds": seeds, "teams": job.teams}
    return command | {"turns": job.turns, "choices": job.choices}


def _battle(job: BattleJob, lines: Iterable[bytes]) -> Iterator[AuditedRow]:
    reader = _DoublesReader if is_doubles(job.format) else _SinglesReader
    readers = [reader(job, seat) for seat in (0, 1)]
    for line in lines:
        record = orjson.loads(line)
        if "end" in record:
            return
        yield from readers[record["seat"]].rows(record)
    raise AssertionError(f"the recorder ended within {job}, see its stderr")


def _fed(battle: SeatBattle | SeatDoubleBattle, record: dict[str, Any]) -> bool:
    """Let the battle read the record; False where nothing is asked."""
    battle.feed(record["lines"])
    if record["truth"] is None:
        return False
    battle.sync(record["request"])
    return True


class _SinglesReader:
    """One seat of singles: read and encoded here, and equal to what the host encoded."""

    def __init__(self, job: BattleJob, seat: int) -> None:
        gen = generation(job.format)
        self._job, self._seat = job, seat
        self._battle = SeatBattle(f"p{seat + 1}", gen)
        self._encoder = SeatEncoder(self._battle, gen)

    def rows(self, record: dict[str, Any]) -> Iterator[AuditedRow]:
        if not _fed(self._battle, record):
            return
        request, truth = record["request"], record["truth"]
        observation = self._encoder.encode(request, legal_choices(request, self._battle.position))
        row = AuditedRow(self._job, self._seat, 0, observation, request, truth)
        assert observation.tobytes() == base64.b64decode(record["row"]), f"the encoders disagree: {row.place}"
        yield row


class _DoublesReader:
    """One seat of doubles; only the first slot that is asked is observed."""

    def __init__(self, job: BattleJob, seat: int) -> None:
        gen = generation(job.format)
        self._job, self._seat = job, seat
        self._battle = SeatDoubleBattle(f"p{seat + 1}", gen)
        self._encoder = DoubleEncoder(self._battle, gen)

    def rows(self, record: dict[str, Any]) -> Iterator[AuditedRow]:
        if not _fed(self._battle, record):
            return
        request, truth = record["request"], record["truth"]
        steps = DoubleSteps(request, self._battle.position, self._encoder)
        observation, _ = steps.encode()
        yield AuditedRow(self._job, self._seat, steps.slot, observation, request, truth)
