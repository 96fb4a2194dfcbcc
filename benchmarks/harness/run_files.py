"""What the files of a run directory take, by part: what must stay as it is, and what may grow at a stated rate."""

from __future__ import annotations

import math
import os
from pathlib import Path

from simul.common.checkpoints.meta import checkpoint_folders, is_milestone
from simul.common.config.schema import Config
from simul.common.role.run_directory import RunDir
from simul.launch.monitoring.curves.curves_csv import CSV_NAME
from simul.launch.monitoring.curves.figures import FIRST_INTERVAL_SEC, INTERVAL_SHARE, LAST_INTERVAL_SEC

NEWEST = 2  # checkpoints that are kept because they are the newest
MIB = 2**20
REST = "rest of the run directory, MiB"
LARGEST = "largest checkpoint, MiB"
STAYS = (REST, LARGEST)
# What may grow, or is bounded by a setting.
MILESTONES, PAST, OTHER = "milestones", "past selves", "other checkpoints"
ROWS, CURVES, LOGS, REPLAY = "rows of curves.csv", "curves, MiB", "logs, MiB", "replay, MiB"


def measure_files(run_dir: RunDir) -> dict[str, float]:
    """Every part by its name. A milestone among the newest checkpoints does not count as one yet."""
    folders = checkpoint_folders(run_dir.checkpoints)
    past = list((run_dir.checkpoints / "past").glob("[0-9]" * 9))
    best = [path for path in run_dir.checkpoints.glob("best-*") if path.is_dir() and not path.is_symlink()]
    milestones = [path for path in folders[NEWEST:] if is_milestone(path)]
    parts = {
        CURVES: sum(size_of(path) for path in (run_dir.root / "tensorboard", *run_dir.root.glob("curves*.csv"))) / MIB,
        LOGS: size_of(run_dir.logs) / MIB,
        REPLAY: size_of(run_dir.root / "replay") / MIB,
    }
    rest = size_of(run_dir.root) / MIB - size_of(run_dir.checkpoints) / MIB - sum(parts.values())
    return {
        REST: max(rest, 1.0),  # status.json, whose size varies, is most of a small rest
        LARGEST: max(map(size_of, [*folders, *past, *best]), default=0) / MIB,
        MILESTONES: len(milestones), PAST: len(past), OTHER: len(folders) - len(milestones) + len(best),
        ROWS: _lines(run_dir.root / CSV_NAME), **parts,
    }  # fmt: skip


def rows_due(begin_sec: float, end_sec: float) -> float:
    """Rows of the curves between two moments of the training: one a second at first, one each ten seconds at last."""
    return _rows_until(end_sec) - _rows_until(begin_sec)


def checkpoints_due(config: Config, decisions: float) -> tuple[float, float]:
    """Milestones and past selves of so many decisions, rounded up."""
    learner = config.learner
    past = decisions / learner.past_every_decisions if config.opponents.past > 0 and learner.past_resident else 0.0
    return decisions / learner.milestone_every_decisions + 1, past + 1


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; 0 for what is not there."""
    if not path.is_dir():
        return _size(path)
    return sum(_size(Path(folder) / name) for folder, _, names in os.walk(path) for name in names)


def _rows_until(sec: float) -> float:
    """The integral of 1 / interval, where the interval is INTERVAL_SHARE of the time between its two bounds."""
    grows, steady = FIRST_INTERVAL_SEC / INTERVAL_SHARE, LAST_INTERVAL_SEC / INTERVAL_SHARE
    between = math.log(min(max(sec, grows), steady) / grows) / INTERVAL_SHARE
    return min(sec, grows) / FIRST_INTERVAL_SEC + between + max(sec - steady, 0.0) / LAST_INTERVAL_SEC


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # a checkpoint that was removed meanwhile
        return 0


def _lines(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(MIB), b""))
    except OSError:
        return 0
