"""A run that a benchmark watches through its status.json, from its start to the window that is measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import Popen
from typing import Any

from benchmarks.harness.processes import MeasurementFailed
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json
from simul.launch.processes.role_reports import number

READY_SEC = 600.0  # also on cores that others use
STEADY_UPDATES = 2  # updates made before the window opens
STEADY_SEC = 180.0  # and not waited for longer than that
STOP_SEC = 40.0
LOOK_SEC = 0.05

Status = Mapping[str, Any]


class RunStatus:
    """status.json as it changes.

    Args:
        process: of `simul up`; log: its output.
    """

    def __init__(self, run_dir: RunDir, process: Popen[bytes], log: Path) -> None:
        self.run_dir = run_dir
        self._process = process
        self._log = log

    def wait_steady(self, warm_up_sec: float) -> None:
        """Until the run has trained for `warm_up_sec` and made its first updates. Raises MeasurementFailed."""
        self.wait(lambda status: status.get("phase") == "training", READY_SEC, "it is ready")
        begin = time.monotonic()
        self.wait(lambda _: time.monotonic() - begin >= warm_up_sec, READY_SEC, "it is warm")
        self.wait(
            lambda status: (number(status, "learner", "updates") or 0) >= STEADY_UPDATES, STEADY_SEC, "it has learned"
        )

    def wait(self, condition: Callable[[Status], bool], limit_sec: float, until: str) -> Status:
        """The first reading that satisfies `condition`. Raises MeasurementFailed."""
        deadline = time.monotonic() + limit_sec
        while not condition(status := read_json(self.run_dir, "status.json")):
            self._check(deadline, until)
            time.sleep(LOOK_SEC)
        return status

    def fresh(self) -> Status:
        """The next reading in which the server's decisions have moved. Raises MeasurementFailed."""
        return self._moved("it decides again", "server", "decisions")

    def learned(self) -> Status:
        """The next reading in which the learner's decisions have moved. Raises MeasurementFailed."""
        return self._moved("it learns again", "learner", "decisions_learned_since_start")

    def _moved(self, until: str, *name: str) -> Status:
        last = number(read_json(self.run_dir, "status.json"), *name) or 0
        return self.wait(lambda now: (number(now, *name) or 0) > last, STEADY_SEC, until)

    def _check(self, deadline: float, until: str) -> None:
        if self._process.poll() is None and time.monotonic() < deadline:
            return
        tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])
        ended = f"ended with exit code {self._process.returncode}" if self._process.returncode is not None else "hangs"
        raise MeasurementFailed(f"`simul up` {ended} before {until}; its last words:\n{tail}")
