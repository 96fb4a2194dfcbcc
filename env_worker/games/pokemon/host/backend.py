"""The interface of what runs battles: a host over pipes, or Showdown servers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from simul.env_worker.games.pokemon.host.host_messages import HostTick

Seed = Sequence[int] | str | None
Play = tuple[str, int]


class BattleStart(NamedTuple):
    """How a battle begins. The same seeds, teams and choices give the same battle.

    teams: packed; None: the format draws one from its seed in `team_seeds`.
    reuse: True = the seeds come from a pool, so the host caches the teams drawn from them.
    encode: seats whose decisions come as rows instead of records.
    tell: of those, seats whose lines and requests come as records, too, each before its row.
    play: bots that play a seat: their names in `node/bots/seat.mjs`, and a seed, of which the low 32 bits count.
    max_turns: a battle without encoded seats is ended behind it, as `truncated`; None: never.
    tally: number of free switches in a row when counting for rewards; None: count nothing.
    log: True = send the spectator's protocol log when the battle ends.
    """

    seed: Seed = None
    team_seeds: tuple[Seed, Seed] = (None, None)
    teams: tuple[str | None, str | None] = (None, None)
    reuse: bool = False
    names: tuple[str, str] = ("p1", "p2")
    encode: tuple[bool, bool] = (False, False)
    tell: tuple[bool, bool] = (False, False)
    play: tuple[Play | None, Play | None] = (None, None)
    max_turns: int | None = None
    tally: int | None = None
    log: bool = False


PLAIN_START = BattleStart()


def drawn_start(rng: random.Random) -> BattleStart:
    """The seeds. Equal generators draw equally."""
    seed, *team_seeds = [[rng.getrandbits(16) for _ in range(4)] for _ in range(3)]
    return BattleStart(seed, (team_seeds[0], team_seeds[1]))


class BattleBackend(Protocol):
    """A `NodeHost`, or Showdown servers. Commands are queued until `flush`; results arrive in a `HostTick`."""

    def start_battle(self, battle: int, battle_format: str, start: BattleStart = PLAIN_START) -> None:
        """A battle, numbered by the caller."""

    def choose(self, battle: int, seat: int, request_number: int, choice: str) -> None:
        """The answer to one request, in the simulator's words."""

    def act(self, battle: int, seat: int, request_number: int, action: int) -> None:
        """The answer of an encoded seat."""

    def stop_battle(self, battle: int) -> None:
        """End a battle without a result."""

    def spectate_battle(self, battle: int, on: bool) -> None:
        """Say the log of a battle with every change of it, in `HostTick.spectated`, from now on or no more."""

    def check_format(self, battle_format: str, teams: Sequence[str], timeout_sec: float = 60.0) -> dict[str, Any]:
        """Whether a format can be played and these teams are legal in it, see node/simulate/formats.mjs. Blocks."""

    def flush(self) -> None:
        """Send everything queued."""


class BackendKeeper(Protocol):
    """Keeps a backend running: a host, or the connections to Showdown servers."""

    @property
    def backend(self) -> BattleBackend | None:
        """None while it is down."""

    @property
    def pids(self) -> list[int]:
        """Its processes on this machine."""

    @property
    def restarts(self) -> int:
        """How often it was started again."""

    def files(self) -> list[int]:
        """File descriptors that are readable when there is output."""

    def start(self) -> BattleBackend:
        """Start it. Raises EnvError."""

    def poll(self) -> HostTick:
        """What the backend has said. Raises HostDied once when a host is found dead, EnvError after too many deaths."""

    def revive(self) -> BattleBackend | None:
        """A new backend in place of a dead one, None while it is not up yet."""

    def close(self) -> None:
        """Stop it."""
