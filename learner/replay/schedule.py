"""How much of the past is learned from, and how often. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReplayWindow:
    """The newest samples that are drawn from: all of the first `first`, then a share that shrinks.

    As KataGo's (Wu 2019, arXiv:1902.10565, appendix C), with c = `first`, alpha = `exponent`, beta = `slope`:

        window(n) = c (1 + beta ((n / c)^alpha - 1) / alpha)      n: samples since the run began, n > c
    """

    first: int
    exponent: float
    slope: float

    def size(self, total: int) -> int:
        """The window after `total` samples."""
        if total <= self.first:
            return total
        growth = ((total / self.first) ** self.exponent - 1) / self.exponent
        return min(total, int(self.first * (1 + self.slope * growth)))


class UseSchedule:
    """When an update is due, so that `uses` samples are drawn for each one that arrives.

    Samples that a former life of the learner stored are drawn from, but no update is owed for them.

    Attributes:
        batch_rows: draws of an update.
    """

    def __init__(self, uses: float, batch_rows: int, min_samples: int) -> None:
        self._uses = uses
        self.batch_rows = batch_rows
        self._min_samples = min_samples
        self._arrived = self._drawn = 0

    def count_arrived(self, samples: int) -> None:
        """Count stored samples."""
        self._arrived += samples

    def count_drawn(self) -> None:
        """Count the draws of an update."""
        self._drawn += self.batch_rows

    def due(self, held: int) -> bool:
        """Whether an update of `batch_rows` draws is due; `held`: samples that can be drawn."""
        return held >= self._min_samples and self._arrived * self._uses - self._drawn >= self.batch_rows

    @property
    def uses(self) -> float:
        """Draws per sample that arrived since process start."""
        return self._drawn / self._arrived if self._arrived else 0.0
