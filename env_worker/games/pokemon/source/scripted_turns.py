"""Queue of requests to scripted players, answered a little at a time so that no policy's decision waits for them."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping

from simul.env_worker.games.pokemon.host.backend import BattleBackend
from simul.env_worker.games.pokemon.host.host_messages import SeatRecord
from simul.env_worker.games.pokemon.source.matchmaking import LiveBattle
from simul.env_worker.games.pokemon.source.scoreboard import Scoreboard
from simul.env_worker.games.pokemon.source.seats import ScriptedSeat

TURN_SEC = 0.002  # a player thinks for up to a millisecond, and the worker has others to serve


class ScriptedTurns:
    """Requests to scripted seats, in the order in which they came.

    turns.add_request(record)               # as the simulator asks
    turns.answer(battles, backend)             # once around the worker's loop, at most TURN_SEC and one answer
    poller.wait([*others, *turns.files()])  # does not sleep while a request is queued
    """

    def __init__(self, score: Scoreboard) -> None:
        self._score = score
        self._clock = time.perf_counter
        self._queued: deque[SeatRecord] = deque()
        self._pipe: tuple[int, ...] = ()  # holds one byte that is never read: always readable

    def add_request(self, record: SeatRecord) -> None:
        """A request to a scripted seat."""
        self._queued.append(record)

    def answer(self, battles: Mapping[int, LiveBattle], backend: BattleBackend) -> None:
        """Queue answers at `backend` until the time is up or none is left. Requests of finished battles are dropped."""
        if not self._queued:
            return
        until = self._clock() + TURN_SEC
        while self._queued:
            record = self._queued.popleft()
            battle = battles.get(record.battle)
            if battle is None:
                continue
            self._answer(battle, record, backend)
            if self._clock() >= until:
                break
        backend.flush()

    def files(self) -> list[int]:
        """A descriptor that is always readable, while a request is queued; else none."""
        if not self._queued:
            return []
        if not self._pipe:
            self._pipe = os.pipe()
            os.write(self._pipe[1], b"\0")
        return [self._pipe[0]]

    def close(self) -> None:
        """Drop all requests and close the pipe."""
        self._queued.clear()
        for descriptor in self._pipe:
            os.close(descriptor)
        self._pipe = ()

    def _answer(self, battle: LiveBattle, record: SeatRecord, backend: BattleBackend) -> None:
        seat = battle.seats[record.seat]
        assert isinstance(seat, ScriptedSeat)
        assert record.request is not None
        choice = seat.answer(record.request_number, record.lines, record.request)
        self._score.scripted_decisions += 1
        self._score.scripted_defaults += choice.defaulted
        if choice.failure:
            self._score.replace_scripted("raised", choice.failure)
        backend.choose(battle.number, record.seat, record.request_number, choice.command)
