"""Battles of the pinned simulator, decision by decision: the observation beside the simulator's own state."""

from __future__ import annotations

import base64
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from simul.env_worker.games.pokemon.formats.spec import generation, is_doubles
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.tables.host_tables import encoder_tables
from simul.env_worker.games.pokemon.tables.layout import Extras
from simul.env_worker.games.pokemon.tables.random_sets import KNOWN_FORMATS
from tests.support.pokemon.audit.teams import custom_team
from tests.support.pokemon.audit.told import Told

RECORDER = Path(__file__).with_name("record.mjs")
Truth = dict[str, Any]
Choices = dict[str, list[str]]  # "p1", "p2" -> words, one for each request
GIMMICKS = {"m": " mega", "u": " ultra", "z": " zmove", "d": " dynamax", "t": " terastallize"}


class BattleJob(NamedTuple):
    """A battle to play: both seats by seeded random choices, or by `choices` ("default" after the last)."""

    format: str
    number: int
    teams: tuple[str | None, str | None] = (None, None)
    turns: int = 60
    choices: Choices | None = None


class AuditedRow(NamedTuple):
    """One observation (float16 [D]) and the simulator's state of that moment, see record.mjs.

    Attributes:
        slot: the one that decides, 1 only in doubles.
        truth: at a team preview it has no `legal`.
        picks: what was chosen for the same request before.
        told: what the seat has been told of its foes.
    """

    job: BattleJob
    seat: int
    slot: int
    observation: NDArray[np.float16]
    request: dict[str, Any]
    truth: Truth
    picks: tuple[Any, ...]
    told: Told

    @property
    def place(self) -> str:
        """Where to look for this row."""
        return f"{self.job.format} {self.job.number}, seat {self.seat}, turn {self.truth['turn']}"


def extras_of(battle_format: str) -> Extras:
    """What rows of singles hold: damage, and sets where they are known."""
    return Extras(sets=bool(KNOWN_FORMATS.fullmatch(battle_format)))


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


def words(text: str) -> list[str]:
    """Of "1 2 s3 1t": moves and switches, a gimmick behind a move.

    Of doubles "1>2+s3 -+1": left and right, a target behind a move, "-" passes.
    """
    return [", ".join(map(_choice, word.split("+"))) for word in text.split()]


def _choice(word: str) -> str:
    if word == "-":
        return "pass"
    if word[0] == "s":
        return f"switch {word[1:]}"
    move, _, target = word.partition(">")
    return f"move {move[0]}{' ' + target if target else ''}{GIMMICKS.get(move[1:], '')}"


def audited_rows(jobs: Iterable[BattleJob]) -> Iterator[AuditedRow]:
    """Plays the battles; every decision of both seats."""
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


def rows_by_name(jobs: Mapping[str, BattleJob]) -> dict[str, list[AuditedRow]]:
    """The rows of each battle; their numbers differ."""
    rows: dict[str, list[AuditedRow]] = {name: [] for name in jobs}
    names = {job.number: name for name, job in jobs.items()}
    for row in audited_rows(jobs.values()):
        rows[names[row.job.number]].append(row)
    return rows


def _send(pipe: Any, jobs: list[BattleJob]) -> None:
    sent: dict[str, Any] | None = None
    with pipe:
        for job in jobs:
            tables = encoder_tables(generation(job.format), extras_of(job.format), is_doubles(job.format))
            if tables is not sent:
                sent = tables
                pipe.write(orjson.dumps({"tables": tables}) + b"\n")
            pipe.write(orjson.dumps(_command(job)) + b"\n")


def _command(job: BattleJob) -> dict[str, Any]:
    seeds = [f"{job.number},{seat},3,4" for seat in (1, 2)]
    command = {"format": job.format, "seed": [job.number, 2, 3, 4], "team_seeds": seeds, "teams": job.teams}
    return command | {"turns": job.turns, "choices": job.choices}


def _battle(job: BattleJob, lines: Iterable[bytes]) -> Iterator[AuditedRow]:
    readers = [_SeatReader(job, seat) for seat in (0, 1)]
    for line in lines:
        record = orjson.loads(line)
        if "end" in record:
            return
        yield from readers[record["seat"]].rows(record)
    raise AssertionError(f"the recorder ended within {job}, see its stderr")


class _SeatReader:
    """One seat's part of the recorder's words."""

    def __init__(self, job: BattleJob, seat: int) -> None:
        self._job, self._seat = job, seat
        self._told = Told(f"p{2 - seat}")

    def rows(self, record: dict[str, Any]) -> Iterator[AuditedRow]:
        self._told.hear(record["lines"])
        truths, picks = record["truths"], record["picks"]
        for n, (slot, row) in enumerate(record["rows"]):
            truth = truths[min(n, len(truths) - 1)]
            told, before = self._told.copy(), tuple(picks[:n])
            observation = np.frombuffer(base64.b64decode(row), np.float16)
            yield AuditedRow(self._job, self._seat, slot, observation, record["request"], truth, before, told)
