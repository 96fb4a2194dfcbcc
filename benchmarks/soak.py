"""`make soak HOURS=8`: does a long run stay as it is? Memory, descriptors, threads and disk, and a verdict.

A run trains for so many hours. After a warm-up (the first hour, of a shorter run its first quarter) no figure of any
process may grow by more than 5%, no process may die, and the books of the run balance at its end.

    make soak HOURS=2 CONFIG=configs/cartpole.yaml ARGS="--json soak.json"
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from benchmarks.harness import processes
from benchmarks.harness.cores import family
from benchmarks.harness.processes import MeasurementFailed, interruptible
from benchmarks.harness.promises import Promise, promises_table
from benchmarks.harness.report import conditions, in_one_line, write_json
from benchmarks.harness.run_status import READY_SEC, RunStatus
from simul.common.config.run_directory import RunDir
from simul.common.launch.monitoring.accounting import imbalances
from simul.common.launch.processes.role_reports import number
from simul.common.launch.processes.run_lock import read_json

MOST_GROWTH = 1.05
WARM_UP_SEC = 3600.0
WARM_UP_SHARE = 0.25  # of a run of less than four hours
WINDOW_SHARE = 0.1  # of the time after the warm-up: its first and its last readings are compared
STOP_SEC = 180.0
SUPERVISOR = "supervisor"
DISK = "run directory, MiB"


@dataclass(frozen=True)
class Reading:
    """What a run held at one moment.

    Attributes:
        seconds: since it began to train.
        decisions: answered so far.
        figures: MiB, descriptors and threads of each process with its children, and MiB of the run directory.
    """

    seconds: float
    decisions: float
    figures: dict[str, float]


def main() -> int:
    """Exit code 0 when everything stayed as it was, 1 when something grew, died or did not add up."""
    parser = argparse.ArgumentParser(
        prog="make soak", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("config", nargs="?", default="configs/pokemon.yaml", help="default: %(default)s")
    parser.add_argument("--hours", type=float, default=8.0, help="of training (default: %(default)s)")
    parser.add_argument("--every", type=float, default=60.0, metavar="S", help="seconds between readings")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="setting of the run")
    parser.add_argument("--json", type=Path, metavar="F", help="write every reading and the verdict to F, as they come")
    options = parser.parse_args()
    for name, value in (("--hours", options.hours), ("--every", options.every)):
        if not (math.isfinite(value) and value > 0):
            parser.error(f"argument {name}: expected a number above 0, got {value}")
    if options.hours * 3600 * (1 - WARM_UP_SHARE) * WINDOW_SHARE < options.every:
        parser.error(
            f"--hours {options.hours:g} is too short for a reading every {options.every:g} s: set --every lower"
        )
    with tempfile.TemporaryDirectory(prefix="simul-soak-") as folder:
        return soak(options, RunDir(Path(folder) / "run"), Path(folder) / "up.log")


def soak(options: argparse.Namespace, run_dir: RunDir, log: Path) -> int:
    """The whole run. Raises MeasurementFailed where it ends early."""
    facts = conditions(config=options.config, hours=options.hours, settings=" ".join(options.set) or "none")
    command = [
        sys.executable, "-P", "-m", "simul.common.cli", "up", options.config, "--plain", "--run-dir", str(run_dir.root),
        *(part for value in options.set for part in ("--set", value)),
    ]  # fmt: skip
    readings: list[Reading] = []
    with log.open("wb") as output:
        process = processes.start(command, output)
        try:
            status = RunStatus(run_dir, process, log)
            status.wait(lambda now: now.get("phase") == "training", READY_SEC, "it is ready")
            began = time.monotonic()
            while time.monotonic() - began < options.hours * 3600:
                wait_until(status, began + (len(readings) + 1) * options.every)
                readings.append(read(process.pid, run_dir, time.monotonic() - began))
                say(readings, options.hours)
                if options.json:
                    write_json(options.json, {"conditions": facts, "readings": [asdict(one) for one in readings]})
        finally:
            code = processes.stop(process, STOP_SEC)
    found = verdict(readings, read_json(run_dir, "summary.json"), code)
    sys.stdout.write(f"{promises_table(found)}\n\n{in_one_line(facts)}\n")
    kept = all(promise.kept for promise in found)
    sys.stdout.write("nothing grew\n" if kept else "".join(f"{promise}\n" for promise in found if not promise.kept))
    if options.json:
        write_json(options.json, {"conditions": facts, "readings": [asdict(one) for one in readings],
                                  "verdict": [promise.as_dict() for promise in found]})  # fmt: skip
    return int(not kept)


def wait_until(status: RunStatus, at: float) -> None:
    """Until time.monotonic() is `at`. Raises MeasurementFailed where the run ends before."""
    status.wait(lambda _: time.monotonic() >= at, at - time.monotonic() + READY_SEC, "its time was over")


def read(supervisor: int, run_dir: RunDir, seconds: float) -> Reading:
    """The figures of now. A process that ends meanwhile is left out."""
    status = read_json(run_dir, "status.json")
    roles = {str(process["name"]): int(process["pid"]) for process in status["processes"]}
    figures: dict[str, float] = {}
    for name, members in {
        SUPERVISOR: [psutil.Process(supervisor)],
        **{name: family([pid]) for name, pid in roles.items()},
    }.items():
        for member in members:
            with contextlib.suppress(psutil.Error):
                for what, amount in (
                    ("MiB", member.memory_info().rss / 2**20),
                    ("descriptors", member.num_fds()),
                    ("threads", member.num_threads()),
                ):
                    figures[f"{name}, {what}"] = figures.get(f"{name}, {what}", 0.0) + amount
    figures[DISK] = (
        sum(_size(Path(folder) / name) for folder, _, names in os.walk(run_dir.root) for name in names) / 2**20
    )
    return Reading(seconds, number(status, "server", "decisions") or 0.0, figures)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:  # a checkpoint that was removed meanwhile
        return 0


def say(readings: Sequence[Reading], hours: float) -> None:
    """A line of progress."""
    now, before = readings[-1], readings[-2] if len(readings) > 1 else Reading(0.0, 0.0, {})
    rate = (now.decisions - before.decisions) / (now.seconds - before.seconds)
    totals = {unit: sum(value for name, value in now.figures.items() if name.endswith(unit) and name != DISK)
              for unit in ("MiB", "descriptors", "threads")}  # fmt: skip
    sys.stderr.write(
        f"{now.seconds / 60:.1f} of {60 * hours:g} minutes: {rate:,.0f} decisions/s; {totals['MiB']:,.0f} MiB, "
        f"{totals['descriptors']:.0f} descriptors, {totals['threads']:.0f} threads, "
        f"{now.figures[DISK]:,.1f} MiB on disk\n"
    )


def verdict(readings: Sequence[Reading], summary: dict[str, object], code: int) -> list[Promise]:
    """Growth of every figure after the warm-up, deaths, the books, and how the run ended."""
    last = readings[-1].seconds
    warm = min(WARM_UP_SEC, WARM_UP_SHARE * last)
    window = WINDOW_SHARE * (last - warm)
    first = [one.figures for one in readings if warm <= one.seconds <= warm + window]
    final = [one.figures for one in readings if one.seconds >= last - window]
    if not first:
        raise MeasurementFailed(f"no reading lies between {warm:.0f} and {warm + window:.0f} s: too few readings")
    found = []
    for name in sorted({name for figures in (*first, *final) for name in figures}):
        before, after = (statistics.median(figures.get(name, 0.0) for figures in part) for part in (first, final))
        found.append(
            Promise(f"{name}: last readings / first", after / before if before else math.inf, MOST_GROWTH, False)
        )
    restarts = summary.get("restarts")
    deaths = sum(restarts.values()) if isinstance(restarts, dict) else math.inf
    wrong = len(imbalances(summary)) if summary else math.inf
    return [
        *found, Promise("deaths of processes", deaths, 0, False), Promise("books that do not balance", wrong, 0, False),
        Promise("exit code", code, 0, False),
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(interruptible(main))
