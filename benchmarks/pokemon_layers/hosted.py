"""Layers `ipc` and `parsing`: a simulator host, driven directly with random choices."""

from __future__ import annotations

import random
import select
from pathlib import Path

from benchmarks.pokemon_layers.random_choice import random_choice
from simul.common.config.schema import PokemonConfig
from simul.common.protocol.errors import EnvError
from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from simul.env_worker.games.pokemon.simulator.battle_host import drawn_start
from simul.env_worker.games.pokemon.simulator.host import SimHost
from simul.env_worker.games.pokemon.source.source import generation

WAIT_SEC = 0.2


class HostedBattles:
    """Keeps `envs` battles running on one host. `parse`: every seat also keeps track of its battle as ours do."""

    def __init__(self, node: Path, config: PokemonConfig, *, envs: int, seed: int, parse: bool) -> None:
        self.decisions = 0
        self._format, self._gen = config.format, generation(config.format)
        self._parse = parse
        self._rng = random.Random(seed)
        self._seats: dict[int, tuple[SeatBattle, SeatBattle]] = {}
        self._started = 0
        self._host = SimHost(node, accelerate=config.accelerate)
        self._host.start()
        for _ in range(envs):
            self._start_battle()
        self._host.flush()

    @property
    def pids(self) -> list[int]:
        return [self._host.pid]

    def turn(self) -> None:
        """Wait for requests, answer all that are there."""
        host, rng = self._host, self._rng
        select.select([host.fileno()], [host.write_fileno()] if host.wants_write else [], [], WAIT_SEC)
        tick = host.poll()
        for battle, seat, request_number, lines, request in tick.records:
            if request is None:
                continue
            if self._parse:
                tracked = self._seats[battle][seat]
                tracked.feed(lines)
                tracked.sync(request)
            host.choose(battle, seat, request_number, random_choice(request, rng))
            self.decisions += 1
        for error in tick.errors:
            if error.kind != "unavailable":  # a new request follows that one by itself
                raise EnvError(f"the simulator refused a choice: {error}")
        for end in tick.ended:
            self._seats.pop(end.battle, None)
            self._start_battle()
        host.flush()

    def close(self) -> None:
        self._host.close()

    def _start_battle(self) -> None:
        number, self._started = self._started, self._started + 1
        if self._parse:
            self._seats[number] = (SeatBattle("p1", self._gen), SeatBattle("p2", self._gen))
        self._host.start_battle(number, self._format, drawn_start(self._rng))
