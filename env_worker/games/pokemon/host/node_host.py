"""The host: a Node process that runs many battles, driven over two pipes.

No thread and no event loop of its own; the worker's loop watches it:

    host = NodeHost(find_node().path)
    host.start()
    host.start_battle(7, "gen9randombattle", BattleStart(seed=..., team_seeds=(..., ...)))
    host.flush()                                   # one write for everything asked since the last
    while running:
        poller.wait([host.fileno()])               # and for writing too while host.wants_write
        tick = host.poll()
        for battle, seat, request_number, lines, request in tick.records: ...
        host.choose(battle, seat, request_number, "move 1")
        host.flush()
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

from simul.common.errors import EnvError
from simul.env_worker.games.pokemon.host.backend import PLAIN_START, BattleStart
from simul.env_worker.games.pokemon.host.host_messages import HostTick, RequestTeams
from simul.env_worker.games.pokemon.host.pipes import PipedProcess
from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER
from simul.env_worker.games.pokemon.tables.layout import NUM_ACTIONS, OBSERVATION_SIZE

START_SEC = 60.0
HOST_SCRIPT = HOST_FOLDER / "host.mjs"
# Each collection of Node's young generation copies the battles that are new in it: the larger it is, the fewer copies.
YOUNG_GENERATION = ("--min-semi-space-size=64", "--max-semi-space-size=64")  # MB


class HostDied(EnvError):
    """The Node process has exited and its battles are lost. Caught by the source, which starts another host."""


class NodeHost:
    """Owns one Node process. Not thread-safe; used by one event loop.

    `replies_per_write`: the host writes after this many answers; 0: after all that it has read.
    `follow`: it simulates nothing; see `Follower`.
    """

    def __init__(
        self, node: Path, *, accelerate: bool = True, index: int = 0, replies_per_write: int = 0, follow: bool = False
    ) -> None:
        self.node = node
        self.replies_per_write = replies_per_write
        self.accelerate = accelerate
        self.follow = follow
        self.name = f"{'following' if follow else 'simulator'} host {index}"
        self.hello: dict[str, Any] = {}
        self.bytes_heard = 0
        self._process: PipedProcess | None = None
        self._observation_size, self._num_actions = OBSERVATION_SIZE, NUM_ACTIONS
        self._commands: list[dict[str, Any] | orjson.Fragment] = []
        self._unsent = bytearray()
        self._partial = bytearray()
        self._teams = RequestTeams()

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def wants_write(self) -> bool:
        """True = the pipe was full; call flush() again when the stdin pipe is writable."""
        return bool(self._unsent)

    def fileno(self) -> int:
        return self._running().stdout

    def write_fileno(self) -> int:
        """Watch this for writability while `wants_write`."""
        return self._running().stdin

    def start(self, timeout_sec: float = START_SEC) -> None:
        """Starts the process and waits for its greeting."""
        self.spawn()
        self._await(lambda tick: tick.hello, timeout_sec)

    def greeted(self) -> bool:
        """Whether the greeting has arrived; never blocks. Raises HostDied when the process is gone."""
        return bool(self.hello or self.poll().hello)

    def spawn(self) -> None:
        """Starts the process; commands may be sent once it has `greeted`."""
        flags = () if self.follow else YOUNG_GENERATION
        command = [str(self.node), *flags, str(HOST_SCRIPT), f"--owner={os.getpid()}"]
        if self.replies_per_write:
            command.append(f"--replies-per-write={self.replies_per_write}")
        if self.follow:
            command.append("--follow")
        if not self.accelerate:
            command.append("--no-accelerate")
        try:
            self._process = PipedProcess(command)
        except OSError as error:
            raise EnvError(f"cannot start Node at {self.node}: {error.strerror}. Run `make setup`.") from error

    def start_battle(self, battle: int, battle_format: str, start: BattleStart = PLAIN_START) -> None:
        """Queues a battle. Before a seat is encoded, `send_tables` must have been called."""
        self._commands.append({"c": "start", "b": battle, "format": battle_format, **start._asdict()})

    def choose(self, battle: int, seat: int, request_number: int, choice: str) -> None:
        """Queues the answer to one request, e.g. `move 1` or `switch 3` (by slot, never by name)."""
        self._commands.append({"c": "choose", "b": battle, "s": seat, "r": request_number, "choice": choice})

    def act(self, battle: int, seat: int, request_number: int, action: int) -> None:
        """Queues the answer of an encoded seat, as one of its legal actions."""
        self._commands.append({"c": "choose", "b": battle, "s": seat, "r": request_number, "a": action})

    def send_tables(self, tables: dict[str, Any]) -> None:
        """Queues what a host that has greeted needs to encode decisions (`host_tables.encoder_tables`)."""
        wanted, found = tables["layout"]["fingerprint"], self.hello.get("layout")
        if found != wanted:
            raise EnvError(
                f"the simulator host writes observations of layout {found}, the tables here are of {wanted}: install "
                "Simul again; after a change of a layout run "
                "`python -m simul.env_worker.games.pokemon.tables.layout_files`"
            )
        self._commands.append({"c": "tables", "tables": tables})
        self._observation_size, self._num_actions = tables["layout"]["size"], tables["layout"]["num_actions"]

    def check_format(self, battle_format: str, teams: Sequence[str], timeout_sec: float = 60.0) -> dict[str, Any]:
        """Whether a format can be played and these teams are legal in it, see node/simulate/formats.mjs. Blocks."""
        self._commands.append({"c": "format", "format": battle_format, "teams": list(teams)})
        return self._await(lambda tick: tick.format, timeout_sec)

    def stop_battle(self, battle: int) -> None:
        """Queues the end of a battle without a result; it is reported as `stopped`."""
        self._commands.append({"c": "stop", "b": battle})

    def spectate_battle(self, battle: int, on: bool) -> None:
        """Queues that a battle's log comes with every change of it, from now on or no more."""
        self._commands.append({"c": "spectate", "b": battle, "on": on})

    def queue(self, command: bytes) -> None:
        """Queues a command that is JSON already."""
        self._commands.append(orjson.Fragment(command))

    def ping(self, number: int) -> None:
        self._commands.append({"c": "ping", "n": number})

    def flush(self) -> None:
        """Sends everything queued as one line; what does not fit into the pipe is kept for the next call."""
        if self._commands:
            self._unsent += orjson.dumps(self._commands)
            self._unsent += b"\n"
            self._commands.clear()
        if self._unsent:
            self._running().write_from(self._unsent)

    def poll(self) -> HostTick:
        """Everything the host has written since the last call; never blocks. Raises HostDied when it is gone."""
        tick = HostTick(self._observation_size, self._num_actions, self._teams)
        if self._unsent:
            self.flush()
        before = len(self._partial)
        ended = self._running().read_into(self._partial)
        self.bytes_heard += len(self._partial) - before
        tick.read_messages(self._partial)
        self.hello = tick.hello or self.hello
        if ended and not tick:
            raise self._death()
        return tick

    def stderr_tail(self) -> str:
        """The last lines the host wrote to stderr."""
        return self._running().stderr_tail()

    def close(self, grace_sec: float = 2.0) -> None:
        """Closes stdin, which ends the host; kills it after `grace_sec`."""
        process, self._process = self._process, None
        if process is not None:
            process.close(grace_sec)

    def _running(self) -> PipedProcess:
        if self._process is None:
            raise EnvError(f"{self.name} is not started")
        return self._process

    def _await(self, answer: Callable[[HostTick], dict[str, Any]], timeout_sec: float) -> dict[str, Any]:
        """Wait for one answer; no other command may be open."""
        self.flush()
        deadline = time.monotonic() + timeout_sec
        while not (found := answer(self.poll())):
            left = deadline - time.monotonic()
            if left <= 0:
                self.close(0.1)
                raise EnvError(f"{self.name} did not answer within {timeout_sec:g} s")
            select.select([self.fileno()], [self.write_fileno()] if self.wants_write else [], [], left)
        return found

    def _death(self) -> HostDied:
        code, words = self._running().exit_code(), self.stderr_tail()
        return HostDied(f"{self.name} exited with code {code}" + (f": {words}" if words else ""))
