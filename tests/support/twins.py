"""The same battles twice on one host, read and encoded in Python and encoded by the host: number by number equal.

Everybody answers by uniformly random legal actions. A refused choice fails, unless the request itself said that
it may be (`maybeTrapped` and its like: something hidden forbids it).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simul.env_worker.games.pokemon.battle_view.seat_battle import Request, SeatBattle
from simul.env_worker.games.pokemon.encoding.actions import legal_choices
from simul.env_worker.games.pokemon.encoding.encoder import SeatEncoder
from simul.env_worker.games.pokemon.encoding.host_tables import encoder_tables
from simul.env_worker.games.pokemon.formats.spec import generation
from simul.env_worker.games.pokemon.formats.teams import legal_teams, read_teams
from simul.env_worker.games.pokemon.host.backend import drawn_start
from simul.env_worker.games.pokemon.host.host_messages import HostTick, SeatRecord, SeatRow
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.source.request_steps import PreviewSteps
from simul.env_worker.games.pokemon.tables.layout import PLAIN, Extras, slices
from tests.support.hosts import wait

TEAMS = Path(__file__).parents[1] / "golden" / "pokemon" / "teams"
AT_ONCE = 8
MAYBE = ("maybeTrapped", "maybeDisabled", "maybeLocked")


def announced(request: Request) -> bool:
    """Whether a request says that a choice it allows may be refused."""
    return any(asked.get(key) for asked in request.get("active", ()) if asked for key in MAYBE)


def stop_battles(host: NodeHost, battles: Iterable[int]) -> None:
    """Battles that a failure has left: the next ones on this host have the same numbers."""
    for battle in battles:
        host.stop_battle(battle)
    host.ping(0)
    host.flush()
    while wait(host).pong != 0:
        pass


class _Reader:
    """A seat read and encoded in Python."""

    def __init__(self, seat: int, gen: int, extras: Extras) -> None:
        self.battle = SeatBattle(f"p{seat + 1}", gen)
        self.request: Request = {}
        self._gen = gen
        self._extras = extras
        self._encoder = SeatEncoder(self.battle, gen, extras)
        self._choices: Any = None
        self._preview: PreviewSteps | None = None

    def see(self, record: SeatRecord) -> None:
        self.battle.feed(record.lines)
        assert record.request is not None
        self.request = record.request
        if "teamPreview" in record.request:
            self._preview = PreviewSteps(self.battle, self._gen, record.request, self._extras)
            self._choices = self._preview.choices
            return
        self._preview = None
        self.battle.sync(record.request)
        self._choices = legal_choices(record.request, self.battle.position)

    def command(self, action: int) -> str | None:
        """None = another pick of a team preview comes first."""
        return self._preview.pick(action) if self._preview is not None else str(self._choices.command(action))

    def check(self, row: SeatRow) -> None:
        if self._preview is not None:
            observation, standing = self._preview.encode()
        else:
            observation, standing = self._encoder.encode(self.request, self._choices), self._encoder.standing
        assert bytes(self._choices.mask) == row.mask.tobytes()
        assert row.turn == row.facts.turn == self.battle._turn
        if observation.tobytes() != row.observation.tobytes():
            pytest.fail(_difference(observation, row.observation, self._extras))
        assert row.facts.standing == standing


def _difference(ours: np.ndarray, theirs: np.ndarray, extras: Extras) -> str:
    wrong = np.flatnonzero(ours.view(np.uint16) != theirs.view(np.uint16))
    parts = slices(extras)
    named = [next(f"{s.name}[{i - s.start}]" for s in parts if s.start <= i < s.start + s.size) for i in wrong[:12]]
    return "; ".join(f"{name}: python {ours[i]}, host {theirs[i]}" for name, i in zip(named, wrong))


class Twins:
    """Battle 2n is read here, 2n + 1 is encoded there. The host has started; others may play on it afterwards.

    Attributes:
        compared: decisions that were equal.
        refused: choices that were refused, and announced to be.
    """

    def __init__(self, host: NodeHost, battle_format: str, seed: int, extras: Extras = PLAIN) -> None:
        self.compared = 0
        self.refused = 0
        self._format = battle_format
        self._gen = generation(battle_format)
        self._extras = extras
        self._rng = random.Random(f"{battle_format}/{seed}")
        self._host = host
        self._teams: Sequence[str] = ()
        self._readers: dict[tuple[int, int], _Reader] = {}
        self._alive: set[int] = set()

    def play(self, battles: int) -> None:
        self._host.send_tables(encoder_tables(self._gen, self._extras))
        file = TEAMS / f"{self._format}.txt"
        self._teams = legal_teams(self._host, self._format, read_teams(str(file) if file.exists() else ""))
        started = 0
        try:
            while self._alive or started < battles:
                while len(self._alive) < 2 * AT_ONCE and started < battles:
                    self._start(started)
                    started += 1
                self._step(self._exchange())
        finally:
            stop_battles(self._host, self._alive)

    def _start(self, number: int) -> None:
        start = drawn_start(self._rng, self._teams)
        for twin, encode in ((2 * number, False), (2 * number + 1, True)):
            self._host.start_battle(twin, self._format, start._replace(encode=(encode, encode)))
            self._alive.add(twin)
        for seat in (0, 1):
            self._readers[2 * number, seat] = _Reader(seat, self._gen, self._extras)

    def _exchange(self) -> HostTick:
        """Send everything; the host answers all of it in one tick."""
        self._host.ping(1)
        self._host.flush()
        while True:
            tick: HostTick = wait(self._host)
            if tick.pong is not None:
                return tick

    def _step(self, tick: HostTick) -> None:
        for error in tick.errors:
            assert error.kind == "unavailable", error
            assert error.battle is not None
            assert error.seat is not None
            if error.battle % 2 == 0:
                self.refused += 1
                assert announced(self._readers[error.battle, error.seat].request), error
        numbers = {}
        for record in tick.records:
            if record.request is not None:
                self._readers[record.battle, record.seat].see(record)
                numbers[record.battle, record.seat] = record.request_number
        self._alive -= {end.battle for end in tick.ended}
        for row in tick.rows:
            twin = (row.battle - 1, row.seat)
            reader = self._readers[twin]
            reader.check(row)
            self.compared += 1
            action = self._rng.choice(np.flatnonzero(row.mask).tolist())
            self._host.act(row.battle, row.seat, row.request_number, action)
            command = reader.command(action)
            if command is not None:
                self._host.choose(*twin, numbers.get(twin, row.request_number), command)
