"""What a server said of itself while it was loaded, and what lies between two such reports. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Metrics = dict[str, Any]  # cumulative since the server's start: `decisions`, `batches`, ...; see docs/metrics.md


class Heard:
    """Reports in the order they came; times are of time.perf_counter()."""

    def __init__(self) -> None:
        self._reports: list[tuple[float, Metrics]] = []

    def add(self, at: float, metrics: Metrics) -> None:
        """A report came."""
        self._reports.append((at, metrics))

    @property
    def last(self) -> Metrics:
        """The newest; {} before the first."""
        return self._reports[-1][1] if self._reports else {}

    def between(self, begin: float, end: float) -> tuple[Metrics, Metrics] | None:
        """First and last report of a span; None where there were not two."""
        inside = [metrics for at, metrics in self._reports if begin <= at <= end]
        return (inside[0], inside[-1]) if len(inside) > 1 else None


def mean_batch_between(first: Metrics, last: Metrics) -> float | None:
    """Rows a forward between two reports; None where nothing was served."""
    batches = last["batches"] - first["batches"]
    return round((last["decisions"] - first["decisions"]) / batches, 1) if batches > 0 else None


def histogram_between(first: Metrics, last: Metrics) -> dict[str, int] | None:
    """Batches by size bucket between two reports; None where the server does not say."""
    if "batch_histogram" not in last:
        return None
    before: Mapping[str, int] = first["batch_histogram"]
    counts: Mapping[str, int] = last["batch_histogram"]
    return {size: count - before.get(size, 0) for size, count in counts.items() if count > before.get(size, 0)}


def stages_between(first: Metrics, last: Metrics) -> dict[str, float] | None:
    """Microseconds an action by stage, between two reports; None where nothing was served, or it does not say."""
    served = last["decisions"] - first["decisions"]
    if not served or "stage_us" not in last:
        return None
    before: Mapping[str, float] = first["stage_us"]  # means since the server's start
    return {
        stage: round((mean * last["decisions"] - before.get(stage, 0.0) * first["decisions"]) / served, 2)
        for stage, mean in last["stage_us"].items()
    }
