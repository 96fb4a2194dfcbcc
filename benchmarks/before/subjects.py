"""What is measured of a tree: an inference server with clients, or a whole training run."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Protocol

from benchmarks.before.trees import command, environment
from benchmarks.harness import processes
from benchmarks.harness.cores import family_seconds
from benchmarks.harness.processes import MeasurementFailed
from benchmarks.harness.run_status import STOP_SEC, RunStatus
from simul.common.role.run_directory import RunDir
from simul.launch.processes.role_reports import number

CHILD = Path(__file__).with_name("stand_of_tree.py")
WARM_UP_SEC = 5.0

Figures = dict[str, float]  # cpu_us: processor time an action or a decision; rate: of them a second; p50_us


class Subject(Protocol):
    """One tree's part in the pairs of one cell."""

    def measure(self, seconds: float) -> Figures:
        """One window. Raises MeasurementFailed."""

    def close(self) -> None:
        """Stop what it has started."""


class Served:
    """A server, pinned to one core, that runs from the first window to the last; its clients have the other core."""

    def __init__(self, tree: Path, precision: str, cell: dict[str, Any]) -> None:
        self._cell = cell
        self._process = processes.start(
            [sys.executable, "-P", str(CHILD), precision], subprocess.DEVNULL, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, cwd=tree, env=environment(tree, one_thread=True),
        )  # fmt: skip
        if self._line() != b"ready\n":
            raise MeasurementFailed(f"the server of {tree} did not become ready")

    def measure(self, seconds: float) -> Figures:
        """See `Subject`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({**self._cell, "seconds": seconds}).encode() + b"\n")
        self._process.stdin.flush()
        found: Figures = json.loads(self._line() or b"{}")
        if not found:
            raise MeasurementFailed(f"the server ended with exit code {self._process.wait()}")
        return found

    def close(self) -> None:
        """See `Subject`."""
        processes.stop(self._process)

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


class Trained:
    """A training run of a shipped configuration of the tree, started anew for each window."""

    def __init__(self, tree: Path, configuration: str) -> None:
        self._tree, self._configuration = tree, configuration

    def measure(self, seconds: float) -> Figures:
        """See `Subject`. Processor time is that of the supervisor and of all its descendants."""
        with tempfile.TemporaryDirectory(prefix="simul-before-run-") as folder:
            run_dir, log = RunDir(Path(folder) / "run"), Path(folder) / "log"
            line = [*command(self._tree), "up", self._configuration, "--plain", "--run-dir", str(run_dir.root)]
            with log.open("wb") as output:
                process = processes.start(line, output, cwd=self._tree, env=environment(self._tree))
                try:
                    return self._window(process.pid, RunStatus(run_dir, process, log), seconds)
                finally:
                    processes.stop(process, STOP_SEC)

    def close(self) -> None:
        """See `Subject`."""

    @staticmethod
    def _window(pid: int, status: RunStatus, seconds: float) -> Figures:
        status.wait_steady(WARM_UP_SEC)
        before, cpu_sec = status.fresh(), family_seconds([pid])
        time.sleep(seconds)
        after, cpu_sec = status.fresh(), family_seconds([pid]) - cpu_sec
        decisions = (number(after, "server", "decisions") or 0) - (number(before, "server", "decisions") or 0)
        return {"cpu_us": cpu_sec * 1e6 / decisions, "rate": decisions / (after["time"] - before["time"])}
