"""What the runs of one task say: means, the interval of the difference over the seeds, and the verdict. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.harness.promises import Promise
from benchmarks.harness.report import markdown_table
from simul.common.runtime.intervals import t_quantile


@dataclass(frozen=True)
class Outcome:
    """One training run of one side. `mean_return`: of its greedy episodes."""

    mean_return: float
    steps_per_sec: float


@dataclass(frozen=True)
class Comparison:
    """Both sides of a task, a run of each for every seed, in the order in which they were made."""

    task: str
    peer: str
    ours: Sequence[Outcome]
    theirs: Sequence[Outcome]
    promised_speed: float | None = None  # of a task for speed alone

    @property
    def difference(self) -> tuple[float, float] | None:
        """95% interval of our mean return minus theirs, over the seeds (Student's t of the pairs); None: one seed."""
        pairs = [one.mean_return - other.mean_return for one, other in zip(self.ours, self.theirs, strict=True)]
        if len(pairs) < 2:
            return None
        margin = t_quantile(len(pairs) - 1) * statistics.stdev(pairs) / len(pairs) ** 0.5
        return statistics.mean(pairs) - margin, statistics.mean(pairs) + margin

    @property
    def speed(self) -> float:
        """Median over the seeds of our steps a second as a multiple of theirs."""
        return statistics.median(
            one.steps_per_sec / other.steps_per_sec for one, other in zip(self.ours, self.theirs, strict=True)
        )

    @property
    def verdict(self) -> str:
        """Not worse: the interval includes 0 or lies above it."""
        if self.promised_speed is not None:
            return "speed only"
        if self.difference is None:
            return "one seed"
        return "PASS" if self.difference[1] >= 0 else "FAIL"

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        sides = {
            side: [vars(outcome) for outcome in outcomes]
            for side, outcomes in (("ours", self.ours), ("theirs", self.theirs))
        }
        found = {"difference_95": self.difference, "speed": self.speed, "verdict": self.verdict}
        return {"task": self.task, "peer": self.peer, **sides, **found}


def speed_promises(comparisons: Sequence[Comparison]) -> list[Promise]:
    """One promise for each peer of a task for speed alone: against its best vectorisation."""
    timed = [one for one in comparisons if one.promised_speed is not None]
    promises = []
    for peer in dict.fromkeys(one.peer for one in timed):
        least = min((one for one in timed if one.peer == peer), key=lambda one: one.speed)
        assert least.promised_speed is not None
        name = f"steps a second beside {peer} ({least.task}), median of {len(least.ours)}"
        promises.append(Promise(name, least.speed, least.promised_speed))
    return promises


def table(comparisons: Sequence[Comparison]) -> str:
    """The comparisons as a Markdown table."""
    heads = ("task", "peer", "seeds", "our return", "its return", "difference (95%)", "our steps/s", "its steps/s",
             "ratio", "")  # fmt: skip
    rows = []
    for one in comparisons:
        interval = one.difference
        rows.append((
            one.task, one.peer, str(len(one.ours)), *(_mean(side, "mean_return", 2) for side in (one.ours, one.theirs)),
            "-" if interval is None else f"{interval[0]:+.2f} to {interval[1]:+.2f}",
            *(_mean(side, "steps_per_sec", 0) for side in (one.ours, one.theirs)), f"{one.speed:.2f}", one.verdict,
        ))  # fmt: skip
    return markdown_table(heads, rows, text_columns=2)


def _mean(outcomes: Sequence[Outcome], name: str, digits: int) -> str:
    return f"{statistics.mean(getattr(outcome, name) for outcome in outcomes):,.{digits}f}"
