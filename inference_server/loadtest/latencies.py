"""Latencies in geometric buckets 2.2% wide from 1 us up: percentiles of any sum of windows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

_BUCKETS_PER_DOUBLING = 32
_BUCKETS = 27 * _BUCKETS_PER_DOUBLING  # up to 134 s
PERCENTILES = (50, 90, 99)


class Latencies:
    """Counts by bucket. Bucket b holds [2^(b / 32), 2^((b + 1) / 32)) us; what is shorter than 1 us counts as 1 us."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self._counts = np.zeros(_BUCKETS, np.int64)
        for bucket, count in (counts or {}).items():
            self._counts[bucket] = count

    def add(self, seconds: NDArray[np.float64]) -> None:
        """Count latencies, float64 [N]."""
        exponents = np.log2(np.maximum(seconds * 1e6, 1.0)) * _BUCKETS_PER_DOUBLING
        buckets = np.minimum(exponents.astype(np.int64), _BUCKETS - 1)
        self._counts += np.bincount(buckets, minlength=_BUCKETS)

    @property
    def total(self) -> int:
        """How many were counted."""
        return int(self._counts.sum())

    def counts(self) -> dict[int, int]:
        """Buckets that are not empty: what travels between processes."""
        return {int(bucket): int(self._counts[bucket]) for bucket in self._counts.nonzero()[0]}

    def percentiles(self) -> dict[str, float]:
        """{"p50": us, "p90": us, "p99": us}, the middle of the bucket each lies in; empty before the first entry."""
        if not self.total:
            return {}
        reached = np.cumsum(self._counts)
        ranks = [int(np.searchsorted(reached, percent / 100 * self.total)) for percent in PERCENTILES]
        return {f"p{p}": round(2 ** ((b + 0.5) / _BUCKETS_PER_DOUBLING), 1) for p, b in zip(PERCENTILES, ranks)}


def merged(parts: Iterable[Mapping[int, int]]) -> Latencies:
    """The sum of several clients' or windows' counts."""
    total = Latencies()
    for part in parts:
        total._counts += Latencies(part)._counts
    return total
