"""One role process: how it is started, signalled and killed, its log, and the CPU and memory it uses."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import IO

import psutil

from simul.common.role.lifecycle import STOP_SIGNAL
from simul.common.role.machine import this_machine
from simul.common.role.run_directory import RunDir
from simul.common.runtime.installation import import_path
from simul.common.runtime.private_files import open_regular, open_to_append

LOG_NAMES = {"learner": "simul-learner", "inference_server": "simul-inference", "env_worker": "simul-worker"}
NICER_BY = 10  # than this process
TAIL_BYTES = 16_384  # of a log, that are read where its process has ended
MOST_NAMELESS_BYTES = 2**20
INTERRUPTED = 130  # exit code after Ctrl-C
_LOG_LINE = re.compile(r"^\d{4}-\d\d-\d\d \S+ \S+ (?P<level>[A-Z]+) ")  # see simul.common.runtime.logs
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip


def role_command(role: str) -> list[str]:
    """The command line of a role. -P: a folder in the working directory must not shadow an import."""
    return [sys.executable, "-P", "-m", f"simul.{role}"]


def role_environment(threads: int) -> dict[str, str]:
    """Environment of a role. Its import path begins with Simul; `import_user_module` finds the working directory."""
    return {
        **os.environ,
        **dict.fromkeys(_THREAD_VARIABLES, str(threads)),
        "PYTHONPATH": import_path(),
        "PYTHONUNBUFFERED": "1",
    }


def run_in_foreground(module: str, arguments: Sequence[str]) -> int:
    """Run a module on this terminal; returns its exit code, 130 where a signal ended it.

    Ctrl-C of a terminal reaches it, too. For a signal that this process alone got it is asked to stop by STOP_SIGNAL,
    which is no second Ctrl-C. This process waits.
    """
    started: list[subprocess.Popen[bytes]] = []
    asked: list[int] = []

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        for process in started:
            process.send_signal(STOP_SIGNAL)

    before = {number: signal.signal(number, ask_to_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        line = [sys.executable, "-P", "-m", module, *arguments]
        started.append(subprocess.Popen(line, env=role_environment(1)))
        if asked:  # before it was there
            started[0].send_signal(STOP_SIGNAL)
        code = started[0].wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return INTERRUPTED if asked and code < 0 else code


class RoleLife(ABC):
    """One life of a role process, here or on another machine, and its log in the run directory.

    Attributes:
        pid: 0 where it is not known yet.
        machine: where `pid` means this process; create_time: in seconds since the epoch, 0.0 where unknown.
        node: name of the machine in a run on several; empty on one.
        fetching: its agent fetches checkpoints from the store, for it or for another rank; it starts after that.
        log_fault: a sentence where its log cannot be written; else empty.
    """

    def __init__(self, role: str, index: int, run_dir: RunDir, run_id: int = 0) -> None:
        self.role = role
        self.index = index
        self.run_id = run_id or time.time_ns()
        self.name = f"{LOG_NAMES.get(role, role)}-{index}"
        self.stop_requested = False
        self.fetching = False
        self.log_fault = ""
        self.pid = 0
        self.machine = this_machine()
        self.node = ""
        self.log = run_dir.logs / f"{self.name}.log"
        self._log_start = self.log.stat().st_size if self.log.exists() else 0

    @property
    @abstractmethod
    def create_time(self) -> float:
        """When it was started; 0.0 where unknown."""

    @abstractmethod
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""

    @abstractmethod
    def request_stop(self) -> None:
        """Ask it to drain, save and exit."""

    @abstractmethod
    def kill(self) -> None:
        """Kill it and everything it started."""

    @abstractmethod
    def measure(self, meter: ResourceMeter) -> None:
        """Write the processor and memory that it uses into `meter`."""

    def exit_reason(self) -> str:
        """`signal 9` or `exit code 1`."""
        return exit_reason(self.exit_code())

    def exited_cleanly(self) -> bool:
        """Exit code 0, or ended by the stop request itself: a role that still starts has no handler for it yet."""
        return self.exit_code() == 0 or (self.stop_requested and self.exit_code() in (-STOP_SIGNAL, -signal.SIGTERM))

    def log_tail(self, lines: int = 15) -> str:
        """The last lines that this life wrote, at most 16 KiB."""
        try:
            text = self._read_tail().decode(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def _read_tail(self) -> bytes:
        """The last TAIL_BYTES that this life wrote. Raises OSError."""
        with os.fdopen(open_regular(self.log), "rb") as file:
            size = self.log.stat().st_size
            start = self._log_start if size >= self._log_start else 0  # rotated since
            file.seek(max(start, size - TAIL_BYTES))
            return file.read()

    def last_line(self) -> str:
        """The last line that this life wrote; of a traceback, the exception."""
        lines = self.log_tail().rstrip().splitlines()
        return _LOG_LINE.sub("", lines[-1]) if lines else ""

    def error_message(self) -> str:
        """Of a life that ended with exit code 2: its last ERROR line, else what it wrote without a log prefix."""
        lines = self.log_tail().splitlines()
        errors = [n for n, line in enumerate(lines) if (found := _LOG_LINE.match(line)) and found["level"] == "ERROR"]
        if errors:
            lines = lines[errors[-1] :]
            return "\n".join([_LOG_LINE.sub("", lines[0]), *lines[1:]])
        return "\n".join(line for line in lines if not _LOG_LINE.match(line)) or "(no reason was logged)"


class RoleProcess(RoleLife):
    """A role process on this machine. It leads its own session, so that Ctrl-C reaches only the supervisor."""

    def __init__(
        self, role: str, index: int, run_dir: RunDir, command: Sequence[str], *,
        threads: int = 1, run_id: int = 0, arguments: Sequence[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(role, index, run_dir, run_id)
        line = [
            *command, "--run-dir", str(run_dir.root), "--index", str(index),
            "--run-id", str(self.run_id), "--parent", str(os.getpid()), *arguments,
        ]  # fmt: skip
        self._nameless: IO[bytes] | None = None  # in place of a log that cannot be written
        with self._open_log() as log:
            self._process = _popen(line, role_environment(threads), log)
        self.pid = self._process.pid

    @property
    def create_time(self) -> float:
        """When it was started; 0.0 once it is gone."""
        try:
            return psutil.Process(self.pid).create_time()
        except psutil.Error:
            return 0.0

    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._process.poll()

    def request_stop(self) -> None:
        """Ask it to drain, save and exit."""
        if self.exit_code() is None:
            self.stop_requested = True
            self._process.send_signal(STOP_SIGNAL)

    def kill(self) -> None:
        """Kill it and everything it started."""
        kill_session(self._process)

    def measure(self, meter: ResourceMeter) -> None:
        """Sample it and its descendants."""
        meter.sample(self.pid)
        if self._nameless is not None and os.fstat(self._nameless.fileno()).st_size > MOST_NAMELESS_BYTES:
            self._nameless.truncate(0)

    def _read_tail(self) -> bytes:
        if self._nameless is None:
            return super()._read_tail()
        self._nameless.seek(max(0, os.fstat(self._nameless.fileno()).st_size - TAIL_BYTES))
        return self._nameless.read()

    def _open_log(self) -> IO[bytes]:
        """The log; where it cannot be opened (disk full, folder removed, no regular file), a file without a name.

        That one keeps why a start failed. Where there is no room for it either, the null device.
        """
        try:
            return os.fdopen(open_to_append(self.log), "ab")
        except OSError as error:
            self.log_fault = f"the log {self.log} cannot be written: {error.strerror}"
        try:
            with tempfile.NamedTemporaryFile(prefix="simul-log-") as named:
                self._nameless = open(named.name, "a+b", buffering=0)  # noqa: SIM115 as long as this object
        except OSError:
            return open(os.devnull, "ab")
        weakref.finalize(self, self._nameless.close)
        return os.fdopen(os.dup(self._nameless.fileno()), "ab")


def exit_reason(code: int | None) -> str:
    """`signal 9` or `exit code 1`, of an exit code as `subprocess` has it."""
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads a session, and everything in that session, and wait for it."""
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def low_priority() -> int:
    """For `psutil.Process.nice` of a child beside the run; what it starts inherits it."""
    if sys.platform == "win32":
        return int(psutil.BELOW_NORMAL_PRIORITY_CLASS)
    return min(psutil.Process().nice() + NICER_BY, 19)


def _popen(line: Sequence[str], environment: Mapping[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
        start_new_session=sys.platform != "win32",
    )  # fmt: skip


class ResourceMeter:
    """CPU (percent of a core) and memory (MiB) of a role process and of its descendants (simulator hosts).

    `cpu_sec`: processor seconds that they have used so far.
    """

    def __init__(self) -> None:
        self._known: dict[int, psutil.Process] = {}
        self.cpu_percent = self.cpu_sec = 0.0
        self.rss_mb = 0.0
        self.children_rss_mb = 0.0
        self.peak_rss_mb = 0.0
        self.peak_children_rss_mb = 0.0

    def sample(self, pid: int) -> None:
        """Measure once. A process that is gone counts 0; peaks stay."""
        try:
            root = psutil.Process(pid)
            family = [root, *root.children(recursive=True)]
        except psutil.Error:
            family = []
        self._known = {process.pid: self._known.get(process.pid, process) for process in family}
        cpu, used, memory = 0.0, 0.0, {}
        for number, process in self._known.items():
            with contextlib.suppress(psutil.Error):
                cpu += process.cpu_percent(None)
                used += sum(process.cpu_times()[:4])  # user and system, of itself and of children that have ended
                memory[number] = process.memory_info().rss / 2**20
        self.cpu_percent, self.cpu_sec = round(cpu, 1), used
        self.rss_mb = round(memory.pop(pid, 0.0), 1)
        self.children_rss_mb = round(sum(memory.values()), 1)
        self._raise_peaks()

    def take_over(self, cpu_percent: float, rss_mb: float, children_rss_mb: float, cpu_sec: float) -> None:
        """Figures that were measured on another machine."""
        self.cpu_sec = cpu_sec
        self.cpu_percent, self.rss_mb, self.children_rss_mb = cpu_percent, rss_mb, children_rss_mb
        self._raise_peaks()

    def _raise_peaks(self) -> None:
        self.peak_rss_mb = max(self.peak_rss_mb, self.rss_mb)
        self.peak_children_rss_mb = max(self.peak_children_rss_mb, self.children_rss_mb)
