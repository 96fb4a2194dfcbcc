"""`python -m simul.launch.cluster.agent`: starts role processes on its machine for a supervisor on another one.

It reads commands from its standard input and writes news to its standard output (`messages.py`). It has a run directory
of its own: nothing is shared with the supervisor's machine. Where its input ends, the supervisor or what carries its
commands is gone: the roles drain, save and exit, and so does the agent.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

from simul.common.role.lifecycle import ORPHAN_SEC, SAVE_PATIENCE_SEC, STOP_SIGNAL
from simul.common.role.machine import this_machine
from simul.common.role.run_directory import RunDir
from simul.common.role.temporary import NODE_KIND, has_checkpoints, keep_folder, make_folder
from simul.common.runtime.logs import NODE_VARIABLE
from simul.common.runtime.private_files import open_to_append, open_to_change, replace_file
from simul.common.store.layout import STOP_WAIT_SEC
from simul.launch.cluster.facts import machine_facts
from simul.launch.cluster.messages import (
    FAILED_START,
    AgentHello,
    FrameReader,
    FromAgent,
    KillRole,
    Leave,
    News,
    StartRole,
    StopRole,
    ToAgent,
    Usage,
    WriteFiles,
    encode_frame,
)
from simul.launch.processes.log_rotation import MOST_LOG_BYTES
from simul.launch.processes.process_group import Command
from simul.launch.processes.role_process import (
    LOG_NAMES,
    ResourceMeter,
    RoleProcess,
    kill_session,
    role_command,
    role_environment,
)

LOOK_EVERY_SEC = 0.1
NEWS_EVERY_SEC = 0.5
PIECE_BYTES = 256 * 1024  # of a log in one message
LEARNER_DRAIN_SEC = SAVE_PATIENCE_SEC + STOP_WAIT_SEC  # after the supervisor is gone: it saves, and waits for its store


class AgentRole:
    """One role process of an agent: first what has to run before it, then the process itself."""

    def __init__(self, wanted: StartRole, run_dir: RunDir, command: Command) -> None:
        self.wanted = wanted
        self.meter = ResourceMeter()
        self.process: RoleProcess | None = None
        self._run_dir, self._command = run_dir, command
        self._first: subprocess.Popen[bytes] | None = None
        self.log = run_dir.logs / f"{LOG_NAMES.get(wanted.role, wanted.role)}-{wanted.index}.log"
        self._code: int | None = None
        self._stopped = False
        try:
            self._begin()
        except OSError as error:
            self._fail(error)

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        if self._code is None and self._first is not None:
            code = self._first.poll()
            if code is not None:
                self._first = None
                if code or self._stopped:
                    self._code = code
                else:
                    self._start()
        if self._code is None and self.process is not None:
            self._code = self.process.exit_code()
        return self._code

    def request_stop(self) -> None:
        """Ask it to drain, save and exit."""
        self._stopped = True
        if self.process is not None:
            self.process.request_stop()
        elif self._first is not None:
            self._first.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it and everything it started."""
        if self.process is not None:
            self.process.kill()
        elif self._first is not None:
            self._stopped = True
            kill_session(self._first)

    def usage(self) -> Usage:
        """Of this moment."""
        if self.process is not None:
            self.process.measure(self.meter)
        return Usage(self.meter.cpu_percent, self.meter.rss_mb, self.meter.children_rss_mb, self.meter.cpu_sec)

    def _begin(self) -> None:
        if not self.wanted.first:
            return self._start()
        with os.fdopen(open_to_append(self.log), "ab") as log:
            self._first = subprocess.Popen(
                [sys.executable, "-P", "-m", *self.wanted.first], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=role_environment(1), start_new_session=True,
            )  # fmt: skip
        return None

    def _start(self) -> None:
        wanted = self.wanted
        try:
            self.process = RoleProcess(
                wanted.role, wanted.index, self._run_dir, self._command(wanted.role), threads=wanted.threads,
                run_id=wanted.run_id, arguments=wanted.arguments,
            )  # fmt: skip
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._code = FAILED_START
        with contextlib.suppress(OSError), os.fdopen(open_to_append(self.log), "a") as log:
            log.write(f"the process could not be started: {error.strerror or error}\n")


class LogTails:
    """What was appended to the log files of a folder since the last call. A large one is emptied once it was read.

    The supervisor has what was read, and rotates its own copy. Lines written between the read and the truncation are
    lost, as in `rotate_logs`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, int] = {}

    def read(self) -> Iterator[tuple[str, bytes]]:
        """(file name, bytes), at most PIECE_BYTES of each file."""
        for path in sorted(self._folder.glob("*.log")):
            if data := self._read_piece(path):
                yield path.name, data

    def read_to_end(self, path: Path) -> Iterator[tuple[str, bytes]]:
        """What a file of the folder holds at this moment, in pieces of PIECE_BYTES."""
        with contextlib.suppress(OSError):
            size = path.stat().st_size
            while self._read.get(path.name, 0) < size and (data := self._read_piece(path)):
                yield path.name, data

    def _read_piece(self, path: Path) -> bytes:
        data = b""
        with contextlib.suppress(OSError), os.fdopen(open_to_change(path), "rb+") as file:
            at = self._read.get(path.name, 0)
            if at > os.fstat(file.fileno()).st_size:
                at = 0  # another program has emptied it
            file.seek(at)
            data = file.read(PIECE_BYTES)
            self._read[path.name] = at + len(data)
            if len(data) < PIECE_BYTES and at + len(data) > MOST_LOG_BYTES:
                file.truncate(0)
                self._read[path.name] = 0
        return data


class Agent:
    """Owns the role processes of one run directory. `run` returns where the supervisor says so, or is gone."""

    def __init__(self, root: Path, commands: int, news: int, command: Command = role_command) -> None:
        """`commands`, `news`: file descriptors."""
        self._run_dir = RunDir(root)
        self._run_dir.create()
        self._commands, self._news, self._command = commands, news, command
        self._reader: FrameReader[ToAgent] = FrameReader(ToAgent)
        self._roles: dict[int, AgentRole] = {}
        self._said: set[int] = set()  # whose start was reported
        self._logs = LogTails(self._run_dir.logs)
        self._next_news = 0.0
        self._left: Leave | None = None

    def run(self) -> None:
        """Until Leave, or the end of the commands."""
        self._send(AgentHello(root=str(self._run_dir.root), machine=this_machine(), facts=machine_facts()))
        while self._left is None:
            if not self._read_commands():
                self._drain()
                return
            self._tell()
        for role in self._roles.values():
            role.kill()
        self._give_up_folder(keep=not self._left.remove)

    def _read_commands(self) -> bool:
        """Carry out what has come; waits a moment. False: nothing will come any more."""
        if not select.select([self._commands], [], [], LOOK_EVERY_SEC)[0]:
            return True
        data = os.read(self._commands, 1 << 16)
        for message in self._reader.feed(data):
            self._carry_out(message)
        return bool(data)

    def _carry_out(self, message: ToAgent) -> None:
        if isinstance(message, WriteFiles):
            self._write(message)
        elif isinstance(message, StartRole):
            self._roles[message.run_id] = AgentRole(message, self._run_dir, self._command)
        elif isinstance(message, StopRole) and message.run_id in self._roles:
            self._roles[message.run_id].request_stop()
        elif isinstance(message, KillRole) and message.run_id in self._roles:
            self._roles[message.run_id].kill()
        elif isinstance(message, Leave):
            self._left = message

    def _write(self, message: WriteFiles) -> None:
        for name, content in message.files.items():
            path = self._run_dir.root / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, content, mode=0o600)
        if "config.yaml" in message.files:
            self._run_dir.write_config(self._run_dir.read_config())  # signed here: the supervisor is trusted

    def _tell(self) -> None:
        """Send news where they are due, or a process has ended."""
        exits = {run_id: code for run_id, role in self._roles.items() if (code := role.poll()) is not None}
        if not exits and time.monotonic() < self._next_news:
            return
        self._next_news = time.monotonic() + NEWS_EVERY_SEC
        self._send_logs(self._logs.read())
        started = {}
        for run_id, role in self._roles.items():
            if run_id not in self._said and role.process is not None:
                self._said.add(run_id)
                started[run_id] = (role.process.pid, role.process.create_time)
        usage = {run_id: role.usage() for run_id, role in self._roles.items() if run_id not in exits}
        for run_id in exits:
            role = self._roles.pop(run_id)
            role.kill()  # also what it started and left behind
            self._send_logs(self._logs.read_to_end(role.log))
        self._send(News(started=started, exits=exits, usage=usage))

    def _send_logs(self, pieces: Iterable[tuple[str, bytes]]) -> None:
        """Each piece in news of its own: all that are unread may be more than a frame holds."""
        for piece in pieces:
            self._send(News(logs=[piece]))

    def _drain(self) -> None:
        """The roles see that their parent is about to go, or are told so; they save and exit."""
        for role in self._roles.values():
            role.request_stop()
        learns = any(role.wanted.role == "learner" for role in self._roles.values())
        deadline = time.monotonic() + (LEARNER_DRAIN_SEC if learns else ORPHAN_SEC)
        while any(role.poll() is None for role in self._roles.values()) and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_SEC)
        for role in self._roles.values():
            role.kill()
        self._give_up_folder(keep=has_checkpoints(self._run_dir.root))

    def _give_up_folder(self, *, keep: bool) -> None:
        """Remove the run directory, or keep it under another name."""
        if keep:
            keep_folder(self._run_dir.root)
        else:
            self._run_dir.remove()

    def _send(self, message: FromAgent) -> None:
        data = encode_frame(message)
        with contextlib.suppress(BrokenPipeError):  # the end of the commands says the same
            while data:
                data = data[os.write(self._news, data) :]


def _ignore(number: int, frame: FrameType | None) -> None:
    """A handler, not SIG_IGN: processes that are started would inherit that one."""


def main(command: Command = role_command) -> int:
    """Exit code 0."""
    parser = argparse.ArgumentParser(prog="python -m simul.launch.cluster.agent")
    parser.add_argument("--working-directory", type=Path, help="where modules of the user's are looked for")
    parser.add_argument("--node", default="", help="name of this machine, for the logs of its processes")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, STOP_SIGNAL):
        signal.signal(number, _ignore)  # the end of its input tells it what to do
    if options.working_directory is not None and options.working_directory.is_dir():
        os.chdir(options.working_directory)
    os.environ[NODE_VARIABLE] = options.node
    Agent(make_folder(NODE_KIND), sys.stdin.fileno(), sys.stdout.fileno(), command).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
