"""Battles of doubles on a real host that has started, every slot of both seats by uniformly random legal actions."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from simul.common.protocol.decisions import Decision
from simul.env_worker.games.pokemon.battle_view.seat_battle import Request
from simul.env_worker.games.pokemon.formats.spec import generation
from simul.env_worker.games.pokemon.formats.teams import legal_teams, read_teams
from simul.env_worker.games.pokemon.host.backend import drawn_start
from simul.env_worker.games.pokemon.host.host_messages import HostTick, SeatRecord
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.source.double_seat import DoubleSeat
from simul.env_worker.games.pokemon.source.rewards import RewardWeights
from tests.support.hosts import wait
from tests.support.twins import AT_ONCE, TEAMS, announced, stop_battles


class Doubles:
    """Attributes:
    decisions: slots that were asked.
    refused: choices that were refused, and announced to be.
    parse_errors: events that some seat could not read.
    """

    def __init__(self, host: NodeHost, battle_format: str, seed: int) -> None:
        self.decisions = 0
        self.refused = 0
        self.parse_errors: set[str] = set()
        self._format = battle_format
        self._rng = random.Random(f"{battle_format}/{seed}")
        self._host = host
        self._teams: Sequence[str] = ()
        self._seats: dict[tuple[int, int], DoubleSeat] = {}
        self._requests: dict[tuple[int, int], Request] = {}
        self._alive: set[int] = set()

    def play(self, battles: int, team_file: str = "") -> None:
        self._teams = legal_teams(self._host, self._format, read_teams(str(TEAMS / team_file) if team_file else ""))
        started = 0
        try:
            while self._alive or started < battles:
                while len(self._alive) < AT_ONCE and started < battles:
                    self._start(started)
                    started += 1
                self._host.flush()
                self._step(wait(self._host))
        finally:
            stop_battles(self._host, self._alive)

    def _start(self, number: int) -> None:
        self._host.start_battle(number, self._format, drawn_start(self._rng, self._teams))
        self._alive.add(number)
        for seat in (0, 1):
            weights = RewardWeights(1.0)
            self._seats[number, seat] = DoubleSeat(0, seat, number, generation(self._format), "learner", 0, weights)

    def _step(self, tick: HostTick) -> None:
        for error in tick.errors:
            assert error.kind == "unavailable", error
            assert error.battle is not None
            assert error.seat is not None
            assert announced(self._requests[error.battle, error.seat]), error
            self._seats[error.battle, error.seat].redo = True
            self.refused += 1
        for record in tick.records:
            self._seats[record.battle, record.seat].battle.feed(record.lines)
            if record.request is not None:
                self._answer(record, record.request)
        for end in tick.ended:
            assert end.reason in ("win", "tie"), end
            self._alive.discard(end.battle)
            for seat in (0, 1):
                self.parse_errors |= set(self._seats.pop((end.battle, seat)).battle.parse_errors)

    def _answer(self, record: SeatRecord, request: Request) -> None:
        seat = self._seats[record.battle, record.seat]
        again, step = seat.redo, seat.step
        self._requests[record.battle, record.seat] = request
        decision: Decision | None = seat.decide(record.request_number, request)
        assert seat.step == step + (not again), "what was refused is the same step again"
        while decision is not None:
            assert decision.mask is not None
            assert decision.observation is not None
            assert np.isfinite(decision.observation).all()
            action = self._rng.choice(np.flatnonzero(decision.mask).tolist())
            assert seat.answer(self._host, record.battle, action)
            self.decisions += 1
            decision = seat.follow_up()
