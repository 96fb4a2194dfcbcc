"""`make soak HOURS=8`: does a long run stay as it is? Memory, descriptors, threads and disk, and a verdict.

A run trains for so many hours. After a warm-up (the first hour, of a shorter run its first quarter) no figure of any
process may grow by more than 5%, no process may die, and the books of the run balance at its end.

Of the run directory some parts may grow, each at most at its stated rate: milestones and past selves, one each so many
decisions of the configuration; curves.csv and TensorBoard's file, 360 rows an hour once the run has trained for 17
minutes, of at most 16 KiB each; logs, 1 MiB an hour. Other checkpoints are at most 4, and all else stays within the 5%.

    make soak HOURS=2 CONFIG=configs/cartpole.yaml ARGS="--json soak.json"
"""

from __future__ import annotations

import argparse
import contextlib
import math
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from benchmarks.harness import processes
from benchmarks.harness.cores import family
from benchmarks.harness.processes import MeasurementFailed, interruptible
from benchmarks.harness.promises import Promise, promises_table
from benchmarks.harness.report import conditions, in_one_line, write_json
from benchmarks.harness.run_files import (
    CURVES,
    LARGEST,
    LOGS,
    MILESTONES,
    OTHER,
    PAST,
    REPLAY,
    ROWS,
    STAYS,
    checkpoints_due,
    measure_files,
    rows_due,
)
from benchmarks.harness.run_status import READY_SEC, RunStatus, Status
from simul.common.config.schema import Config
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json
from simul.launch.monitoring.accounting import imbalances
from simul.launch.processes.role_reports import number

MOST_GROWTH = 1.05
WARM_UP_SEC = 3600.0
WARM_UP_SHARE = 0.25  # of a run of less than four hours
WINDOW_SHARE = 0.1  # of the time after the warm-up: its first and its last readings are compared
STOP_SEC = 180.0
SUPERVISOR = "supervisor"
ROW_KIB = 16.0  # of a report, in all files of curves together
LOG_MIB_AN_HOUR = 1.0
MOST_OTHER = 4  # the newest two checkpoints, the best one, and one that replaces another


@dataclass(frozen=True)
class Reading:
    """What a run held at one moment.

    Attributes:
        seconds: since it began to train.
        decisions: answered so far.
        figures: MiB, descriptors and threads of each process with its children, and the files that must not grow.
        files: parts of the run directory that may grow, see `run_files`.
    """

    seconds: float
    decisions: float
    figures: dict[str, float]
    files: dict[str, float] = field(default_factory=dict)


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
    folder, code = Path(tempfile.mkdtemp(prefix="simul-soak-")), 1
    try:
        code = soak(options, RunDir(folder / "run"), folder / "up.log")
    finally:
        if code:
            sys.stderr.write(f"the run directory and its logs are kept: {folder}\n")
        else:
            shutil.rmtree(folder)
    return code


def soak(options: argparse.Namespace, run_dir: RunDir, log: Path) -> int:
    """The whole run. Raises MeasurementFailed where it ends early."""
    facts = conditions(config=options.config, hours=options.hours, settings=" ".join(options.set) or "none")
    command = [
        sys.executable, "-P", "-m", "simul.launch.cli", "up", options.config, "--plain", "--run-dir", str(run_dir.root),
        *(part for value in options.set for part in ("--set", value)),
    ]  # fmt: skip
    readings: list[Reading] = []
    with log.open("wb") as output:
        process = processes.start(command, output)
        try:
            status = RunStatus(run_dir, process, log)
            status.wait(lambda now: now.get("phase") == "training", READY_SEC, "it is ready")
            began, config = time.monotonic(), run_dir.read_config()
            while time.monotonic() - began < options.hours * 3600:
                now = wait_until(status, began + (len(readings) + 1) * options.every)
                readings.append(read(process.pid, run_dir, now, time.monotonic() - began))
                say(readings, options.hours)
                if options.json:
                    write_json(options.json, {"conditions": facts, "readings": [asdict(one) for one in readings]})
        finally:
            code = processes.stop(process, STOP_SEC)
    found = verdict(readings, read_json(run_dir, "summary.json"), code, config)
    sys.stdout.write(f"{promises_table(found)}\n\n{in_one_line(facts)}\n")
    kept = all(promise.kept for promise in found)
    sys.stdout.write("nothing grew\n" if kept else "".join(f"{promise}\n" for promise in found if not promise.kept))
    if options.json:
        write_json(options.json, {"conditions": facts, "readings": [asdict(one) for one in readings],
                                  "verdict": [promise.as_dict() for promise in found]})  # fmt: skip
    return int(not kept)


def wait_until(status: RunStatus, at: float) -> Status:
    """The first status once time.monotonic() is `at`. Raises MeasurementFailed where the run ends before."""
    return status.wait(
        lambda now: time.monotonic() >= at and "processes" in now,
        at - time.monotonic() + READY_SEC, "its time was over, with a status.json",
    )  # fmt: skip


def read(supervisor: int, run_dir: RunDir, status: Status, seconds: float) -> Reading:
    """The figures of now. A process that ends meanwhile is left out."""
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
    files = measure_files(run_dir)
    figures |= {name: files.pop(name) for name in STAYS}
    return Reading(seconds, number(status, "server", "decisions") or 0.0, figures, files)


def say(readings: Sequence[Reading], hours: float) -> None:
    """A line of progress."""
    now, before = readings[-1], readings[-2] if len(readings) > 1 else Reading(0.0, 0.0, {})
    rate = (now.decisions - before.decisions) / (now.seconds - before.seconds)
    totals = {unit: sum(value for name, value in now.figures.items() if name.endswith(unit) and name not in STAYS)
              for unit in ("MiB", "descriptors", "threads")}  # fmt: skip
    sys.stderr.write(
        f"{now.seconds / 60:.1f} of {60 * hours:g} minutes: {rate:,.0f} decisions/s; {totals['MiB']:,.0f} MiB, "
        f"{totals['descriptors']:.0f} descriptors, {totals['threads']:.0f} threads, "
        f"{now.files[MILESTONES] + now.files[PAST] + now.files[OTHER]:.0f} checkpoints, "
        f"{now.files[CURVES]:,.2f} MiB of curves\n"
    )


def verdict(readings: Sequence[Reading], summary: dict[str, object], code: int, config: Config) -> list[Promise]:
    """Growth of every figure after the warm-up, of files against their rates, deaths, the books, and the exit code."""
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
        if name == LARGEST:  # before the first checkpoint nothing has grown
            before = next((value for one in readings if one.seconds >= warm and (value := one.figures[name])), 0.0)
        found.append(Promise(f"{name}: last readings / first", _ratio(after, before), MOST_GROWTH, False))
    restarts = summary.get("restarts")
    deaths = sum(restarts.values()) if isinstance(restarts, dict) else math.inf
    wrong = len(imbalances(summary)) if summary else math.inf
    return [
        *found, *_grown_files([one for one in readings if one.seconds >= warm], config),
        Promise("deaths of processes", deaths, 0, False), Promise("books that do not balance", wrong, 0, False),
        Promise("exit code", code, 0, False),
    ]  # fmt: skip


def _ratio(after: float, before: float) -> float:
    """1 where there was nothing and is nothing."""
    return after / before if before else math.inf if after else 1.0


def _grown_files(readings: Sequence[Reading], config: Config) -> list[Promise]:
    """What may grow, against its stated rate. A rate's last unit may be complete at any moment of the time."""
    first, last = readings[0], readings[-1]
    hours, decisions = (last.seconds - first.seconds) / 3600, last.decisions - first.decisions
    grown = {name: last.files[name] - first.files[name] for name in last.files}
    milestones, past = checkpoints_due(config, decisions)
    evaluations = decisions / every if (every := config.evaluation.every_decisions) else 0.0
    due = rows_due(first.seconds, last.seconds) + evaluations + 1
    found = [
        Promise(f"{MILESTONES}: new ones", grown[MILESTONES], milestones, False),
        Promise(f"{PAST}: new ones", grown[PAST], past, False),
        Promise(f"{OTHER}: most", max(one.files[OTHER] for one in readings), MOST_OTHER, False),
        Promise(f"{ROWS}: new ones", grown[ROWS], due, False),
        Promise("curves: KiB of a row", 1024 * grown[CURVES] / (grown[ROWS] or due), ROW_KIB, False),
        Promise(f"{LOGS} an hour", grown[LOGS] / hours if hours else math.inf, LOG_MIB_AN_HOUR, False),
    ]
    if last.files[REPLAY]:
        found.append(Promise(REPLAY, last.files[REPLAY], config.replay.disk_mb * MOST_GROWTH, False))
    return found


if __name__ == "__main__":
    sys.exit(interruptible(main))
