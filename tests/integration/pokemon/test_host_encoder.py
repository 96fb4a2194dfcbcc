"""The host's encoder writes what the Python encoder writes, to the last bit, from what the seat was told."""

from __future__ import annotations

import random
import select
from typing import Any

import numpy as np
import pytest

from env_worker.games.pokemon.actions import legal_choices
from env_worker.games.pokemon.encoder import SeatEncoder
from env_worker.games.pokemon.host import SimHost
from env_worker.games.pokemon.host_messages import HostTick, SimRecord, SimRow
from env_worker.games.pokemon.host_tables import encoder_tables
from env_worker.games.pokemon.layout import ATTACKERS, TEAM_SIZE, slices
from env_worker.games.pokemon.node import find_node
from env_worker.games.pokemon.seat_battle import SeatBattle

GENERATIONS = range(1, 10)
AT_ONCE = 8


class _Reader:
    """A seat read and encoded in Python."""

    def __init__(self, seat: int, gen: int, attackers: int) -> None:
        self.battle = SeatBattle(f"p{seat + 1}", gen)
        self._encoder = SeatEncoder(self.battle, gen, attackers)
        self._open: tuple[Any, Any] | None = None

    def see(self, record: SimRecord) -> None:
        self.battle.feed(record.lines)
        assert record.request is not None
        self.battle.sync(record.request)
        self._open = record.request, legal_choices(record.request, self.battle.position)

    def refuse(self, action: int) -> None:
        assert self._open is not None
        self._open[1].mask[action] = 0

    def command(self, action: int) -> str:
        assert self._open is not None
        return str(self._open[1].command(action))

    def check(self, row: SimRow) -> None:
        assert self._open is not None
        observation = self._encoder.encode(*self._open)
        assert bytes(self._open[1].mask) == row.mask.tobytes()
        assert row.turn == row.facts.turn == self.battle._turn
        if observation.tobytes() != row.observation.tobytes():
            pytest.fail(_difference(observation, row.observation))
        assert row.facts.standing == self._encoder.standing


def _difference(ours: np.ndarray, theirs: np.ndarray) -> str:
    wrong = np.flatnonzero(ours.view(np.uint16) != theirs.view(np.uint16))
    named = [next(f"{s.name}[{i - s.start}]" for s in slices() if s.start <= i < s.start + s.size) for i in wrong[:12]]
    return "; ".join(f"{name}: python {ours[i]}, host {theirs[i]}" for name, i in zip(named, wrong))


class _Twins:
    """The same battles twice on one host, with the same choices: 2n is read here, 2n + 1 is encoded there."""

    def __init__(self, gen: int, seed: int, attackers: int) -> None:
        self.compared = 0
        self._gen = gen
        self._attackers = attackers
        self._rng = random.Random(f"{gen}/{seed}")
        self._host = SimHost(find_node().path)
        self._readers: dict[tuple[int, int], _Reader] = {}
        self._actions: dict[tuple[int, int], int] = {}
        self._alive: set[int] = set()

    def play(self, battles: int) -> None:
        self._host.start()
        self._host.send_tables(encoder_tables(self._gen, self._attackers))
        started = 0
        try:
            while self._alive or started < battles:
                while len(self._alive) < 2 * AT_ONCE and started < battles:
                    self._start(started)
                    started += 1
                self._step(self._exchange())
        finally:
            self._host.close()

    def _start(self, number: int) -> None:
        seeds = [[self._rng.getrandbits(16) for _ in range(4)] for _ in range(3)]
        for twin, encode in ((2 * number, False), (2 * number + 1, True)):
            self._host.start_battle(
                twin, f"gen{self._gen}randombattle",
                seed=seeds[0], team_seeds=(seeds[1], seeds[2]), encode=(encode, encode),
            )  # fmt: skip
            self._alive.add(twin)
        for seat in (0, 1):
            self._readers[2 * number, seat] = _Reader(seat, self._gen, self._attackers)

    def _exchange(self) -> HostTick:
        """Send everything; the host answers all of it in one tick."""
        self._host.ping(1)
        self._host.flush()
        while True:
            select.select([self._host.fileno()], [], [], 10)
            tick = self._host.poll()
            if tick.pong is not None:
                return tick

    def _step(self, tick: HostTick) -> None:
        for error in tick.errors:
            assert error.kind in ("unavailable", "invalid"), error
            key = (error.battle, error.seat)
            if error.kind == "invalid" and key in self._readers:
                self._readers[key].refuse(self._actions[key])
        numbers = {}
        for record in tick.records:
            if record.request is not None:
                self._readers[record.battle, record.seat].see(record)
                numbers[record.battle, record.seat] = record.request_number
        self._alive -= {end.battle for end in tick.ended}
        for row in tick.rows:
            twin = (row.battle - 1, row.seat)
            self._readers[twin].check(row)
            self.compared += 1
            action = self._actions[twin] = self._rng.choice(np.flatnonzero(row.mask).tolist())
            self._host.act(row.battle, row.seat, row.request_number, action)
            self._host.choose(*twin, numbers.get(twin, row.request_number), self._readers[twin].command(action))


def compare(gen: int, battles: int, seed: int, attackers: int = ATTACKERS) -> int:
    """Decisions that were compared."""
    twins = _Twins(gen, seed, attackers)
    twins.play(battles)
    return twins.compared


@pytest.mark.parametrize("gen", GENERATIONS)
def test_equal_to_the_python_encoder(gen: int) -> None:
    assert compare(gen, battles=12, seed=1) > 300


def test_equal_with_the_damage_of_the_whole_team() -> None:
    assert compare(9, battles=4, seed=2, attackers=TEAM_SIZE) > 100


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("gen", GENERATIONS)
def test_equal_over_thousands_of_decisions(gen: int) -> None:
    decisions = 0
    for seed in range(100, 1000):
        decisions += compare(gen, battles=40, seed=seed)
        if decisions >= 12_000:
            return
