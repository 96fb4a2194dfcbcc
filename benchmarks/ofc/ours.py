"""`simul up ofc` for a while: decisions learned from a second, in steady state."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import processes
from benchmarks.harness.cores import family_seconds
from benchmarks.harness.run_status import STOP_SEC, RunStatus, Status
from simul.common.role.run_directory import RunDir
from simul.launch.processes.role_reports import number


def learn(folder: Path, overrides: Sequence[str], seconds: float, warm_up_sec: float) -> dict[str, float]:
    """Train in a fresh run directory. The window begins and ends where an update is reported.

    Returns:
        per_sec: decisions learned from a second; cpu_us: processor time of each, of all processes.

    Raises:
        MeasurementFailed: the run ended or hangs.
    """
    run_dir, log = RunDir(folder), folder.with_suffix(".log")
    command = [
        sys.executable, "-P", "-m", "simul.launch.cli", "up", "ofc", "--plain", "--run-dir", str(folder),
        "--set=stop_after_decisions=0", *(f"--set={each}" for each in overrides),
    ]  # fmt: skip
    with log.open("wb") as output:
        process = processes.start(command, output)
        try:
            status = RunStatus(run_dir, process, log)
            status.wait_steady(warm_up_sec)
            before, cpu = status.learned(), family_seconds([process.pid])
            time.sleep(seconds)
            after, cpu = status.learned(), family_seconds([process.pid]) - cpu
        finally:
            processes.stop(process, STOP_SEC)
    decisions = _learned(after) - _learned(before)
    return {"per_sec": decisions / (after["time"] - before["time"]), "cpu_us": cpu * 1e6 / decisions}


def _learned(status: Status) -> float:
    return number(status, "learner", "decisions_learned_since_start") or 0.0
