"""One simulator host: a Node process that runs many battles, spoken to over two pipes.

No thread and no event loop of its own; the worker's loop watches it:

    host = SimHost(find_node().path)
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

import contextlib
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import orjson

from common.errors import EnvError
from env_worker.games.pokemon.battle_host import PLAIN_START, BattleStart
from env_worker.games.pokemon.host_messages import HostTick, SimEnd, SimError, SimRecord, SimRow
from env_worker.games.pokemon.layout import OBSERVATION_SIZE

__all__ = ["HOST_SCRIPT", "HostDied", "HostTick", "SimEnd", "SimError", "SimHost", "SimRecord", "SimRow"]

HOST_SCRIPT = Path(__file__).parent / "sim_host" / "host.mjs"
PIPE_BYTES = 1 << 20
READ_BYTES = 1 << 20
STDERR_TAIL_LINES = 12


class HostDied(EnvError):
    """The Node process is gone, and with it all its battles; the source starts another host."""


class SimHost:
    """Owns one Node process. Not thread-safe; used by one event loop."""

    def __init__(self, node: Path, *, accelerate: bool = True, index: int = 0) -> None:
        self.node = node
        self.accelerate = accelerate
        self.index = index
        self.hello: dict[str, Any] = {}
        self.bytes_heard = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._stdin = -1
        self._stdout = -1
        self._stderr: IO[bytes] | None = None
        self._observation_size = OBSERVATION_SIZE
        self._commands: list[dict[str, Any]] = []
        self._unsent = bytearray()
        self._partial = bytearray()

    @property
    def pid(self) -> int:
        if self._process is None:
            raise EnvError(f"simulator host {self.index} is not started")
        return self._process.pid

    @property
    def wants_write(self) -> bool:
        """True = the pipe was full; call flush() again when the stdin pipe is writable."""
        return bool(self._unsent)

    def fileno(self) -> int:
        return self._stdout

    def write_fileno(self) -> int:
        """Watch this for writability while `wants_write`."""
        return self._stdin

    def start(self, timeout_sec: float = 60.0) -> None:
        """Starts the process and waits for its greeting."""
        command = [str(self.node), str(HOST_SCRIPT), f"--owner={os.getpid()}"]
        if not self.accelerate:
            command.append("--no-accelerate")
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (a pipe nobody drains could block the host)
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                start_new_session=True,  # a terminal's Ctrl-C is for the supervisor to handle
                bufsize=0,
            )
        except OSError as error:
            raise EnvError(f"cannot start Node at {self.node}: {error.strerror}. Run `make setup`.") from error
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin.fileno(), process.stdout.fileno()
        for fd in (self._stdin, self._stdout):
            os.set_blocking(fd, False)
            _enlarge_pipe(fd)
        self._await(lambda tick: tick.hello, timeout_sec)

    def start_battle(self, battle: int, battle_format: str, start: BattleStart = PLAIN_START) -> None:
        """Queues a battle. Before a seat is encoded, `send_tables` must have gone."""
        self._commands.append({"c": "start", "b": battle, "format": battle_format, **start._asdict()})

    def choose(self, battle: int, seat: int, request_number: int, choice: str) -> None:
        """Queues the answer to one request, e.g. `move 1` or `switch 3` (by slot, never by name)."""
        self._commands.append({"c": "choose", "b": battle, "s": seat, "r": request_number, "choice": choice})

    def act(self, battle: int, seat: int, request_number: int, action: int) -> None:
        """Queues the answer of an encoded seat, as one of its legal actions."""
        self._commands.append({"c": "choose", "b": battle, "s": seat, "r": request_number, "a": action})

    def send_tables(self, tables: dict[str, Any]) -> None:
        """Queues what the host needs to encode decisions (`host_tables.encoder_tables`)."""
        self._commands.append({"c": "tables", "tables": tables})
        self._observation_size = tables["layout"]["size"]

    def check_format(self, battle_format: str, teams: Sequence[str], timeout_sec: float = 60.0) -> dict[str, Any]:
        """Whether a format can be played and these teams are legal in it, see sim_host/formats.mjs. Blocks."""
        self._commands.append({"c": "format", "format": battle_format, "teams": list(teams)})
        return self._await(lambda tick: tick.format, timeout_sec)

    def stop_battle(self, battle: int) -> None:
        """Queues the end of a battle without a result; it is reported as `stopped`."""
        self._commands.append({"c": "stop", "b": battle})

    def ping(self, number: int) -> None:
        self._commands.append({"c": "ping", "n": number})

    def flush(self) -> None:
        """Sends everything queued as one line; what a full pipe does not take is kept for later."""
        if self._commands:
            self._unsent += orjson.dumps(self._commands)
            self._unsent += b"\n"
            self._commands.clear()
        if not self._unsent:
            return
        try:
            sent = os.write(self._stdin, self._unsent)
        except BlockingIOError:
            return
        except BrokenPipeError:
            return  # poll() finds out and tells why
        del self._unsent[:sent]

    def poll(self) -> HostTick:
        """Everything the host has said by now; never blocks. Raises HostDied when it is gone."""
        tick = HostTick(self._observation_size)
        if self._unsent:
            self.flush()
        ended = self._read_available()
        tick.take(self._partial)
        self.hello = tick.hello or self.hello
        if ended and not tick:
            raise self._death()
        return tick

    def close(self, grace_sec: float = 2.0) -> None:
        """Closes stdin, upon which the host exits by itself; kills it after the grace."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()  # a host blocked in write wakes up with a broken pipe
        try:
            process.wait(grace_sec)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._stderr is not None:
            self._stderr.close()

    def _read_available(self) -> bool:
        """Reads what is in the pipe; True = the other end is closed."""
        while True:
            try:
                chunk = os.read(self._stdout, READ_BYTES)
            except BlockingIOError:
                return False
            if not chunk:
                return True
            self._partial += chunk
            self.bytes_heard += len(chunk)
            if len(chunk) < READ_BYTES:
                return False

    def _await(self, answer: Callable[[HostTick], dict[str, Any]], timeout_sec: float) -> dict[str, Any]:
        """Wait for one answer; nothing else may be under way."""
        self.flush()
        deadline = time.monotonic() + timeout_sec
        while not (found := answer(self.poll())):
            left = deadline - time.monotonic()
            if left <= 0:
                self.close(0.1)
                raise EnvError(f"simulator host {self.index} did not answer within {timeout_sec:g} s")
            select.select([self._stdout], [self._stdin] if self.wants_write else [], [], left)
        return found

    def _death(self) -> HostDied:
        code = self._process.wait() if self._process is not None else None
        tail = self.stderr_tail()
        return HostDied(f"simulator host {self.index} exited with code {code}" + (f": {tail}" if tail else ""))

    def stderr_tail(self) -> str:
        """The last lines the host wrote to stderr."""
        if self._stderr is None or self._stderr.closed:
            return ""
        with os.fdopen(os.dup(self._stderr.fileno()), "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - 8192))
            lines = stream.read().decode("utf-8", "replace").splitlines()
        return "\n".join(lines[-STDERR_TAIL_LINES:])


def _enlarge_pipe(fd: int) -> None:
    """Fewer wake-ups with a larger pipe; Linux only, and only within the user's limit."""
    try:
        import fcntl

        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)  # pyright: ignore[reportAttributeAccessIssue]
    except (ImportError, AttributeError, OSError):
        return
