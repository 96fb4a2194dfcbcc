"""Durations as percentiles and histograms. docs/metrics.md explains the figures that roles report."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_BUCKETS_PER_DOUBLING = 8


class Histogram(NamedTuple):
    """Entries at most each bound (cumulative), their number, and the sum of the durations in microseconds."""

    below: tuple[int, ...]
    total: int
    sum_us: float


class Timings:
    """Durations in geometric buckets 9% wide: constant memory, percentiles of a recent window, and a histogram of all.

    Two windows alternate: a percentile covers the last `window` to 2 * `window` entries.
    """

    def __init__(self, window: int = 20_000) -> None:
        self._window = window
        self._now: Counter[int] = Counter()
        self._before: Counter[int] = Counter()
        self._older: Counter[int] = Counter()
        self._count = 0

    def add(self, microseconds: float, times: int = 1) -> None:
        """Count a duration `times` times."""
        bucket = round(_BUCKETS_PER_DOUBLING * math.log2(max(microseconds, 1.0)))
        self._now[bucket] += times
        self._count += times
        if self._count >= self._window:
            self._older += self._before
            self._before, self._now, self._count = self._now, Counter(), 0

    def histogram(self, bounds_us: Sequence[float]) -> Histogram:
        """All entries since start, by upper bounds; an entry within 5% of a bound may count on either side."""
        every = self._older + self._before + self._now
        durations = {bucket: 2 ** (bucket / _BUCKETS_PER_DOUBLING) for bucket in every}
        below = [sum(n for bucket, n in every.items() if durations[bucket] <= bound) for bound in bounds_us]
        return Histogram(tuple(below), sum(every.values()), sum(durations[bucket] * n for bucket, n in every.items()))

    def percentiles(self) -> dict[str, float]:
        """{"p50": us, "p99": us} of the recent window; empty before the first entry."""
        both = self._now + self._before
        total = sum(both.values())
        if not total:
            return {}
        result, seen = {}, 0
        wanted = {"p50": 0.50 * total, "p99": 0.99 * total}
        for bucket in sorted(both):
            seen += both[bucket]
            for name, rank in list(wanted.items()):
                if seen >= rank:
                    result[name] = round(2 ** (bucket / _BUCKETS_PER_DOUBLING), 1)
                    del wanted[name]
        return result


class Stages:
    """Where a loop's time goes: seconds by stage. A lap costs a tenth of a microsecond.

    stages.start()
    while running:
        receive(); stages.lap("receive")
        work();    stages.lap("work")

    Every moment since `start` belongs to the stage whose lap ended it, so that the stages add up to `elapsed_sec`.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.seconds = dict.fromkeys(names, 0.0)
        self._began = self._mark = time.perf_counter()

    def start(self) -> None:
        """The loop begins: what was before belongs to no stage."""
        self._began = self._mark = time.perf_counter()

    @property
    def elapsed_sec(self) -> float:
        """Wall clock since `start`, which no lap adds to."""
        return time.perf_counter() - self._began

    def lap(self, stage: str) -> float:
        """The time since the last lap, or start, belongs to `stage`; how long it was."""
        now = time.perf_counter()
        spent = now - self._mark
        self.seconds[stage] += spent
        self._mark = now
        return spent


def power_of_two_bucket(n: int) -> int:
    """The smallest power of two that is at least `n`: bucket of a batch-size histogram."""
    return 1 << max(0, (n - 1).bit_length())
