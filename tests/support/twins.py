"""The same battles twice on one host, read and encoded in Python and encoded by the host: number by number equal.

Everybody answers by uniformly random legal actions. A refused choice fails, unless the request itself said that
it may be (`maybeTrapped` and its like: something hidden forbids it).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simul.common.protocol.decisions import Decision
from simul.common.protocol.specs import Slice
from simul.env_worker.games.pokemon.battle_view.seat_battle import Request, SeatBattle
from simul.env_worker.games.pokemon.encoding.actions import legal_choices
from simul.env_worker.games.pokemon.encoding.encoder import SeatEncoder
from simul.env_worker.games.pokemon.encoding.host_tables import encoder_tables
from simul.env_worker.games.pokemon.formats.spec import generation, is_doubles
from simul.env_worker.games.pokemon.formats.teams import legal_teams, read_teams
from simul.env_worker.games.pokemon.host.backend import drawn_start
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, HostTick, SeatRecord, SeatRow
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.source.double_seat import DoubleSeat
from simul.env_worker.games.pokemon.source.request_steps import PreviewSteps
from simul.env_worker.games.pokemon.source.rewards import RewardWeights
from simul.env_worker.games.pokemon.tables import doubles_layout
from simul.env_worker.games.pokemon.tables.layout import PLAIN, Extras, slices
from tests.support.hosts import wait

TEAMS = Path(__file__).parents[1] / "golden" / "pokemon" / "teams"
AT_ONCE = 8
COUNTING = RewardWeights(knockout=1.0)
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


class _DoublesReader:
    """A seat of doubles read and encoded in Python."""

    def __init__(self, seat: int, gen: int) -> None:
        self._seat = DoubleSeat(0, seat, 0, gen, "learner", 0, COUNTING)
        self._said: str | None = None
        self.request: Request = {}
        self._decision: Decision | None = None

    def see(self, record: SeatRecord) -> None:
        self._seat.read_lines(record.lines, record.request)
        if record.request is None:
            return
        self.request = record.request
        again, step = self._seat.redo, self._seat.step
        self._decision = self._seat.decide(record.request_number, record.request)
        assert self._seat.step == step + (not again), "what was refused is the same step again"

    def refuse(self) -> None:
        self._seat.redo = True

    def choose(self, battle: int, seat: int, request_number: int, choice: str) -> None:
        """Takes the seat's words as a host would."""
        self._said = choice

    def command(self, action: int) -> str | None:
        """None = another decision of the request comes first."""
        self._said = None
        assert self._seat.answer(self, 0, action)  # type: ignore[arg-type]
        self._decision = self._seat.follow_up()
        return self._said

    def check_end(self, end: BattleEnd) -> None:
        assert end.facts(self._seat.seat) == self._seat._final(end)

    def check(self, row: SeatRow) -> None:
        assert self._decision is not None
        assert self._decision.mask is not None
        assert self._decision.observation is not None
        assert self._decision.mask.tobytes() == row.mask.tobytes()
        seen = self._seat._last_snapshot()
        assert seen is not None
        assert row.facts == seen[2]
        _same(self._decision.observation, row.observation, doubles_layout.slices())


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
        if record.request is None:
            return
        self.request = record.request
        if "teamPreview" in record.request:
            self._preview = PreviewSteps(self.battle, self._gen, record.request, self._extras)
            self._choices = self._preview.choices
            return
        self._preview = None
        self.battle.sync(record.request)
        self._choices = legal_choices(record.request, self.battle.position)

    def refuse(self) -> None:
        """The request that follows says all."""

    def command(self, action: int) -> str | None:
        """None = another pick of a team preview comes first."""
        return self._preview.pick(action) if self._preview is not None else str(self._choices.command(action))

    def check_end(self, end: BattleEnd) -> None:
        """Other tests compare the rewards of singles."""

    def check(self, row: SeatRow) -> None:
        if self._preview is not None:
            observation, standing = self._preview.encode()
        else:
            observation, standing = self._encoder.encode(self.request, self._choices), self._encoder.standing
        assert bytes(self._choices.mask) == row.mask.tobytes()
        assert row.turn == row.facts.turn == self.battle._turn
        _same(observation, row.observation, slices(self._extras))
        assert row.facts.standing == standing


def _same(ours: np.ndarray, theirs: np.ndarray, parts: Sequence[Slice]) -> None:
    if ours.tobytes() == theirs.tobytes():
        return
    wrong = np.flatnonzero(ours.view(np.uint16) != theirs.view(np.uint16))
    named = [next(f"{s.name}[{i - s.start}]" for s in parts if s.start <= i < s.start + s.size) for i in wrong[:12]]
    pytest.fail("; ".join(f"{name}: python {ours[i]}, host {theirs[i]}" for name, i in zip(named, wrong)))


class Twins:
    """Battle 2n is read here, 2n + 1 is encoded there. The host has started; others may play on it afterwards.

    Attributes:
        compared: decisions that were equal.
        refused: choices that were refused, and announced to be.
        parse_errors: events that the host could not read.
    """

    def __init__(self, host: NodeHost, battle_format: str, seed: int, extras: Extras = PLAIN) -> None:
        self.compared = 0
        self.refused = 0
        self.parse_errors: set[str] = set()
        self._format = battle_format
        self._gen = generation(battle_format)
        self._doubles = is_doubles(battle_format)
        self._extras = extras
        self._rng = random.Random(f"{battle_format}/{seed}")
        self._host = host
        self._teams: Sequence[str] = ()
        self._team: Callable[[int, int], str] | None = None
        self._readers: dict[tuple[int, int], _Reader | _DoublesReader] = {}
        self._alive: set[int] = set()

    def play(self, battles: int, team_file: str = "", team: Callable[[int, int], str] | None = None) -> None:
        """`team`: packed, of a battle and seat; teams are drawn from a file otherwise, or by the format."""
        self._team = team
        self._host.send_tables(encoder_tables(self._gen, self._extras, self._doubles))
        file = TEAMS / (team_file or f"{self._format}.txt")
        if team is None:
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
        if self._team is not None:
            start = start._replace(teams=(self._team(number, 0), self._team(number, 1)))
        for twin, encode in ((2 * number, False), (2 * number + 1, True)):
            self._host.start_battle(twin, self._format, start._replace(encode=(encode, encode), tally=COUNTING.tally))
            self._alive.add(twin)
        for seat in (0, 1):
            self._readers[2 * number, seat] = (
                _DoublesReader(seat, self._gen) if self._doubles else _Reader(seat, self._gen, self._extras)
            )

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
                self._readers[error.battle, error.seat].refuse()
                assert announced(self._readers[error.battle, error.seat].request), error
        numbers = {}
        for record in tick.records:
            self._readers[record.battle, record.seat].see(record)
            numbers[record.battle, record.seat] = record.request_number
        self.parse_errors |= set(tick.parse_errors)
        for end in tick.ended:
            self._alive.discard(end.battle)
            for seat in (0, 1) if end.battle % 2 else ():
                self._readers[end.battle - 1, seat].check_end(end)
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
