"""How long a weight swap delays replies. Pure.

The longest round trip in the moments after weights were published, beside the longest in as long a span half way
between two swaps: both contain a batch, and whatever else the machine did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

SPAN_SEC = 0.06  # upload, verification and copy are over by then


@dataclass(frozen=True)
class Stall:
    """The longest round trips in microseconds: medians over swaps and over spans without, the difference of p90."""

    around_us: float
    without_us: float
    worse_p90_us: float
    swaps: int

    @property
    def beyond_us(self) -> float:
        """What a swap adds to a round trip, which is one batch and more."""
        return self.around_us - self.without_us


def stall(trips: Sequence[tuple[float, float]], published: Sequence[float], every_sec: float) -> Stall:
    """`trips`: (begin, seconds) of every message; `published`: when weights were, every `every_sec`; one clock for all.

    Raises:
        ValueError: no swap lies within the trips.
    """
    begin, end = min(at for at, _ in trips), max(at for at, _ in trips) - every_sec
    swaps = [at for at in published if begin <= at <= end]
    if not swaps:
        raise ValueError("no swap was published while clients played")
    around = [_longest(trips, at) * 1e6 for at in swaps]
    without = [_longest(trips, at + every_sec / 2) * 1e6 for at in swaps]
    return Stall(median(around), median(without), _p90(around) - _p90(without), len(swaps))


def _longest(trips: Sequence[tuple[float, float]], start: float) -> float:
    return max((sec for at, sec in trips if at < start + SPAN_SEC and at + sec > start), default=0.0)


def _p90(values: Sequence[float]) -> float:
    return sorted(values)[int(0.9 * (len(values) - 1))]
