"""Processes that the benchmark starts: in sessions of their own, stopped by pid, whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any

import orjson
import psutil

from benchmarks.pokemon_layers.cores import family
from simul.common.runtime.installation import ROOT

PACKAGE = "benchmarks.pokemon_layers"
STOP_SEC = 10.0


class LayerFailed(Exception):
    """A layer could not be measured. Caught by `main`: told, and the run fails."""


def interruptible(run: Callable[[], int]) -> int:
    """Call `run`. After Ctrl-C or SIGTERM what it started is stopped by its own `finally`, and the exit code is 130."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; everything that was started is stopped\n")
        return 130


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


class Measured:
    """A child that says `ready`, waits for its turn, measures itself and prints the result: see `window`."""

    def __init__(self, module: str, arguments: Sequence[str], log: Path) -> None:
        self._log = log.open("ab")
        self._name = module
        self._process = start(
            [sys.executable, "-P", "-m", f"{PACKAGE}.{module}", *arguments],
            self._log, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> None:
        """Until everything it needs is running."""
        if self._line() != "ready":
            raise LayerFailed(f"{self._name} did not become ready")

    def go(self, warm_up_sec: float, seconds: float) -> None:
        """Begin; returns at once."""
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps({"warm_up_sec": warm_up_sec, "seconds": seconds}) + b"\n")
        self._process.stdin.flush()

    def result(self) -> dict[str, Any]:
        """What it measured; waits for it."""
        result = self._line()
        assert isinstance(result, dict)
        return result

    def close(self) -> None:
        """Stop it and what it started."""
        stop(self._process)
        self._log.close()

    def _line(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            tail = "\n".join(Path(self._log.name).read_text(errors="replace").splitlines()[-12:])
            raise LayerFailed(f"{self._name} ended with exit code {self._process.wait()}; its last words:\n{tail}")
        return orjson.loads(line)


def start(
    command: Sequence[str],
    log: IO[bytes] | int,
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int | None = None,
    cwd: Path = ROOT,
) -> subprocess.Popen[bytes]:
    """Start a command; stderr goes to the log, and stdout too unless it is given."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=log if stdout is None else stdout,
        stderr=log,
        cwd=cwd,
        start_new_session=sys.platform != "win32",  # a terminal's Ctrl-C is for us to handle
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
    )


def stop(process: subprocess.Popen[bytes], patience_sec: float = STOP_SEC) -> int:
    """Ask a process to stop; kill it and what is left of its descendants. Returns the exit code."""
    everybody = family([process.pid])
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
    _, left = psutil.wait_procs(everybody, max(0.5, deadline - time.monotonic()))
    for survivor in left:
        survivor.kill()
    return code
