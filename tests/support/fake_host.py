"""A simulator host that says what a test puts in: seat 0 of a recorded battle, asked for its first turn."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.schema import OpponentsConfig
from simul.env_worker.games.pokemon.host.host_keeper import HostKeeper
from simul.env_worker.games.pokemon.host.host_messages import CommandError, HostTick, SeatRow
from simul.env_worker.games.pokemon.host.tally import RewardFacts
from simul.env_worker.games.pokemon.source.source import PokemonSource
from simul.env_worker.games.pokemon.tables.layout import OBSERVATION_SIZE
from tests.support.pokemon.vectors import read_vectors

MASK = read_vectors("gen9randombattle").seats[0].records[0].decisions[0].mask


def row(number: int, without: set[int] = frozenset()) -> SeatRow:
    mask = np.array([allowed == "1" and action not in without for action, allowed in enumerate(MASK)], np.uint8)
    facts = RewardFacts((6.0, 6.0, 6.0, 6.0), 1)
    return SeatRow(0, 0, number, 1, facts, np.zeros(OBSERVATION_SIZE, np.float16), mask)


def source_at(host: FakeHost, opponents: OpponentsConfig | None = None, envs: int = 1, **more) -> PokemonSource:
    """A source that plays on `host`, its battles begun."""
    source = PokemonSource(PokemonConfig(), opponents or OpponentsConfig(), envs=envs, seed=0, index=0, **more)
    source._keeper = keeper = HostKeeper(Path("node"), accelerate=True, index=0)
    keeper.backend = host  # type: ignore[assignment]
    source.poll()
    return source


class FakeHost:
    """Says what the test put in; keeps what it was told."""

    pid = 1

    def __init__(self) -> None:
        self.ticks: list[HostTick] = []
        self.started: list[int] = []
        self.chosen: list[tuple] = []
        self.stopped: list[int] = []
        self.bytes_heard = 0

    def start_battle(self, battle, battle_format, start):
        self.started.append(battle)

    def act(self, *choice):
        self.chosen.append(choice)

    def ask(self, number: int, *errors: CommandError) -> None:
        """Seat 0 of battle 0 is asked."""
        self.ticks.append(HostTick(errors=list(errors), rows=[row(number)]))

    def refuse(self, refused: set[int]) -> None:
        """The choice is called invalid; the host asks again by itself, until nothing is left."""
        tick = HostTick(errors=[CommandError(0, 0, 1, "invalid", "no")])
        again = row(1, without=refused)
        if again.mask.any():
            tick.rows.append(again)
        else:
            tick.errors.append(CommandError(0, 0, 1, "exhausted", "no"))
        self.ticks.append(tick)

    def stop_battle(self, battle):
        self.stopped.append(battle)

    def flush(self):
        pass

    def fileno(self):
        return 0

    def close(self):
        pass

    def poll(self):
        self.bytes_heard += bool(self.ticks)
        return self.ticks.pop(0) if self.ticks else HostTick()
