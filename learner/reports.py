"""The learner's figures: every key in one place, to the supervisor, TensorBoard and learner.csv."""

from __future__ import annotations

import csv
import math
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.tensorboard import SummaryWriter

from learner.unrolls import ReceivedUnroll

# Means over an update's minibatches, as the algorithms name them.
FIGURES = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction", "explained_variance", "gradient_norm")
# Columns of learner.csv and tags of TensorBoard.
COLUMNS = (
    "policy_version", "decisions_learned", "time_sec", "decisions_per_sec", "busy_share", "policy_lag_mean",
    "policy_lag_max", "ratio_error_p50", "ratio_error_p99", "learning_rate", "entropy_coefficient", "reward_mean",
    "unrolls_learned", "unrolls_dropped", *FIGURES,
)  # fmt: skip
LAG_BOUNDS = (0, 1, 2, 4, 8, 16)  # histogram of policy_lag: "0", "1", "2", "3-4", ...; the last is open
STALL_AFTER_SEC = 60.0


class Statistics:
    """Counts and clocks since process start; `now` from time.monotonic()."""

    def __init__(self, now: float) -> None:
        self._start = now
        self.wait_sec = 0.0
        self.decisions = 0  # learned from in this life
        self.unrolls = 0
        self.updates = 0
        self.skipped_minibatches = 0
        self.figures: dict[str, float] = dict.fromkeys(FIGURES, math.nan)
        self.ratio_error = (math.nan, math.nan)
        self.reward_mean = math.nan
        self.recent_lag = (math.nan, 0)
        self._lag_sum = 0
        self._lag_max = 0
        self._lags: Counter[str] = Counter()

    def learned(self, unrolls: list[ReceivedUnroll], version: int) -> int:
        """Count a batch that is learned from by weights of `version`. Returns its steps, bootstrap rows left out."""
        lag = version - np.concatenate([unroll.arrays["policy_version"] for unroll in unrolls])
        self.decisions += lag.size
        self.unrolls += len(unrolls)
        self._lag_sum += int(lag.sum())
        self._lag_max = max(self._lag_max, int(lag.max()))
        self.recent_lag = (float(lag.mean()), int(lag.max()))
        self._lags.update(lag_histogram(lag))
        self.reward_mean = float(np.mean([unroll.arrays["reward"].mean() for unroll in unrolls]))
        return lag.size

    def updated(self, figures: dict[str, float], ratio_error: NDArray[np.float32], skipped: int) -> None:
        """Take over the figures of an update; those it lacks keep their last value."""
        self.updates += 1
        self.skipped_minibatches += skipped
        self.figures.update({name: figures[name] for name in FIGURES if name in figures})
        if ratio_error.size:
            self.ratio_error = (float(np.quantile(ratio_error, 0.5)), float(np.quantile(ratio_error, 0.99)))

    def rate(self, now: float) -> float:
        """Decisions learned from per second since process start."""
        return self.decisions / max(now - self._start, 1e-9)

    def busy_share(self, now: float) -> float:
        """Share of the time since process start that was not spent waiting for unrolls."""
        return 1.0 - self.wait_sec / max(now - self._start, 1e-9)

    def age(self, now: float) -> float:
        """Seconds since process start."""
        return now - self._start

    def lag(self) -> dict[str, Any]:
        """policy_lag of every step learned from since process start."""
        mean = self._lag_sum / self.decisions if self.decisions else 0.0
        return {"mean": mean, "max": self._lag_max, "recent_mean": self.recent_lag[0], "histogram": dict(self._lags)}


def lag_histogram(lag: NDArray[np.int64]) -> dict[str, int]:
    """Steps by policy_lag, in buckets named after LAG_BOUNDS. Empty buckets are left out."""
    counts: dict[str, int] = {}
    low = 0
    for high in LAG_BOUNDS:
        name = str(high) if low == high else f"{low}-{high}"
        counts[name] = int(((lag >= low) & (lag <= high)).sum())
        low = high + 1
    counts[f"{low}+"] = int((lag >= low).sum())
    return {name: count for name, count in counts.items() if count}


class StallAlarm:
    """Speaks up once when the version stops advancing although unrolls arrive."""

    def __init__(self, now: float) -> None:
        self._since = now
        self._arrived = 0
        self.raised = False

    def advanced(self, now: float, arrived: int) -> None:
        """The version advanced; `arrived` is the number of unrolls received so far."""
        self._since, self._arrived, self.raised = now, arrived, False

    def check(self, now: float, arrived: int) -> str:
        """A sentence when the alarm goes off, else empty."""
        if self.raised or now - self._since < STALL_AFTER_SEC or arrived == self._arrived:
            return ""
        self.raised = True
        return (
            f"ALARM: the policy version has not advanced for {now - self._since:.0f} s, "
            f"although {arrived - self._arrived} unrolls arrived."
        )


class Journal:
    """TensorBoard under `tensorboard/` and learner.csv, both appended to on resume."""

    def __init__(self, root: Path, decisions: int, every_sec: float = 1.0) -> None:
        self._board = SummaryWriter(str(root / "tensorboard"), purge_step=decisions or None, flush_secs=30)
        self._path = root / "learner.csv"
        self._every = every_sec
        self._next = 0.0
        self._set_aside_other_header()
        self._file = self._path.open("a", newline="")
        self._rows = csv.writer(self._file)
        if self._file.tell() == 0:
            self._rows.writerow(COLUMNS)

    def write(self, row: dict[str, float], decisions: int) -> None:
        """One row, at most one a second; `row` has exactly the keys COLUMNS. Raises OSError."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._every
        self._rows.writerow([f"{row[name]:.6g}" if isinstance(row[name], float) else row[name] for name in COLUMNS])
        self._file.flush()
        for name in COLUMNS:
            if math.isfinite(row[name]):
                self._board.add_scalar(f"learner/{name}", row[name], decisions)

    def close(self) -> None:
        """Flush and close."""
        self._board.close()
        self._file.close()

    def _set_aside_other_header(self) -> None:
        """A file of another version of Simul keeps its rows under another name."""
        if not self._path.exists():
            return
        with self._path.open() as file:
            header = file.readline().strip()
        if header and header != ",".join(COLUMNS):
            number = 1
            while (aside := self._path.with_suffix(f".{number}.csv")).exists():
                number += 1
            self._path.rename(aside)
