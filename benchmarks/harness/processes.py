"""Processes that a benchmark starts: in sessions of their own, pinned, stopped by pid however the benchmark ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any

import orjson
import psutil

from benchmarks.harness.cores import family, pin
from simul.common.runtime.installation import ROOT

STOP_SEC = 10.0
LAST_LINES = 12


class MeasurementFailed(RuntimeError):
    """Something could not be measured. The benchmark says why and fails."""


def interruptible(run: Callable[[], int]) -> int:
    """Call `run`. After Ctrl-C or SIGTERM its own `finally` stops what it started, and the exit code is 130.

    Where something could not be measured, the reason goes to stderr, and the exit code is 1.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return run()
    except MeasurementFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; everything that was started is stopped\n")
        return 130


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


class Child:
    """A module that runs as a process, prints `ready`, and then takes and answers lines of JSON.

    `core`: pins the process to it; None leaves it where it is. The log takes its stderr.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        log: Path,
        *,
        core: int | None = None,
        python: str = sys.executable,
    ) -> None:
        self._log = log.open("ab")
        self._name = module.rpartition(".")[2]
        command = [python, "-P", "-m", module, *arguments]
        self.process = start(command, self._log, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if core is not None:
            pin(self.process.pid, core)

    def wait_ready(self) -> None:
        """Raises MeasurementFailed where the process ends instead."""
        if self._line() != b"ready\n":
            raise MeasurementFailed(f"{self._name} did not become ready; the end of its log:\n{self._end_of_log()}")

    def tell(self, **message: Any) -> None:
        """Send one JSON line."""
        assert self.process.stdin is not None
        self.process.stdin.write(orjson.dumps(message) + b"\n")
        self.process.stdin.flush()

    def result(self) -> Any:
        """The next JSON line. Raises MeasurementFailed where the process ends instead."""
        return orjson.loads(self._line())

    def close(self) -> None:
        """Stop the process and what it started."""
        stop(self.process)
        self._log.close()

    def _line(self) -> bytes:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            raise MeasurementFailed(
                f"{self._name} ended with exit code {code}; the end of its log:\n{self._end_of_log()}"
            )
        return line

    def _end_of_log(self) -> str:
        return last_lines(Path(self._log.name))


def last_lines(log: Path) -> str:
    """The end of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-LAST_LINES:])


def start(
    command: Sequence[str],
    log: IO[bytes] | int,
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int | None = None,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command; stderr goes to the log, and stdout too unless it is given. `env`: above this process's own."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=log if stdout is None else stdout,
        stderr=log,
        cwd=cwd,
        start_new_session=sys.platform != "win32",  # a terminal's Ctrl-C is for us to handle
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path), **(env or {})},
    )


def stop(process: subprocess.Popen[bytes], patience_sec: float = STOP_SEC) -> int:
    """Ask a process to stop; kill it and what is left of its descendants. Returns the exit code."""
    descendants = family([process.pid])
    if process.stdin is not None:
        process.stdin.close()
    if process.poll() is None:
        process.terminate()
    deadline = time.monotonic() + patience_sec
    try:
        code = process.wait(patience_sec)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    if process.stdout is not None:
        process.stdout.close()
    _, left = psutil.wait_procs(descendants, max(0.5, deadline - time.monotonic()))
    for survivor in left:
        survivor.kill()
    return code
