"""Measuring in windows: each client's counts and latencies in each, and when a cell is stable. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
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
        """Number of latencies counted."""
        return int(self._counts.sum())

    def counts(self) -> dict[int, int]:
        """Counts of the buckets that are not empty, as sent between processes."""
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


STABLE_WINDOWS = 3
STABLE_WITHIN = 0.10


class Window(msgspec.Struct, frozen=True, tag="window"):
    """One client's figures of one window. Latencies in the buckets of `Latencies`; every client has the same windows.

    Attributes:
        index: 0 for the first window after warm-up.
        latencies: from the moment a row was sent (closed loop) or due (open loop) to its answer.
        send_lags: open loop only: from the moment a row was due to the moment it was sent.
        errors: rows refused, by code.
        cpu_sec: processor time of the client process.
    """

    index: int
    seconds: float
    latencies: dict[int, int]
    send_lags: dict[int, int]
    errors: dict[str, int]
    cpu_sec: float


class WindowClock:
    """Assigns a client's counts to windows. Time is an argument; `cpu` is processor time; both in seconds."""

    def __init__(self, start: float, warm_up_sec: float, window_sec: float) -> None:
        self._begin = start + warm_up_sec
        self._window_sec = window_sec
        self._index = -1  # warm-up
        self._clear(0.0)

    def latencies(self, seconds: NDArray[np.float64]) -> None:
        """Rows that were answered, float64 [N]."""
        self._latencies.add(seconds)

    def send_lags(self, seconds: NDArray[np.float64]) -> None:
        """Rows that were sent, float64 [N]."""
        self._send_lags.add(seconds)

    def errors(self, code: str, rows: int) -> None:
        """Rows that were refused."""
        self._errors[code] += rows

    def roll(self, now: float, cpu: float) -> Window | None:
        """The window that ended before `now`, once; None while one is open or during warm-up."""
        if now < self._begin + (self._index + 1) * self._window_sec:
            return None
        ended = None
        if self._index >= 0:
            ended = Window(
                index=self._index,
                seconds=self._window_sec,
                latencies=self._latencies.counts(),
                send_lags=self._send_lags.counts(),
                errors=dict(self._errors),
                cpu_sec=cpu - self._cpu,
            )
        self._index += 1
        self._clear(cpu)
        return ended

    def _clear(self, cpu: float) -> None:
        self._latencies, self._send_lags = Latencies(), Latencies()
        self._errors: Counter[str] = Counter()
        self._cpu = cpu


class LoadFigures(msgspec.Struct, frozen=True):
    """All clients together, over the last windows.

    Attributes:
        actions_per_sec: answered rows a second.
        latency_us, send_lag_us: p50, p90, p99; empty where nothing was counted.
        samples: latencies behind the percentiles.
        stable: throughput and median latency of the last three windows lie within 10%.
        spread: least and greatest of the windows, of actions_per_sec, p50, p90, p99; empty where there is one window.
        client_busy: share of the time that the busiest client process was computing.
    """

    actions_per_sec: float
    latency_us: dict[str, float]
    send_lag_us: dict[str, float]
    samples: int
    windows: int
    stable: bool
    errors: dict[str, int]
    client_busy: float
    spread: dict[str, tuple[float, float]]


def complete_windows(by_client: Sequence[Sequence[Window]]) -> list[list[Window]]:
    """Windows that every client has reported: one list a window, of one entry a client."""
    return [list(windows) for windows in zip(*by_client)]


def is_stable(windows: Sequence[Sequence[Window]]) -> bool:
    """Whether throughput and median latency of the last three windows lie within 10% (largest over smallest)."""
    last = windows[-STABLE_WINDOWS:]
    if len(last) < STABLE_WINDOWS:
        return False
    sums = [merged(client.latencies for client in window) for window in last]
    if not all(total.total for total in sums):
        return False
    rates = [total.total for total in sums]
    medians = [total.percentiles()["p50"] for total in sums]
    return all(max(values) <= (1 + STABLE_WITHIN) * min(values) for values in (rates, medians))


def figures(windows: Sequence[Sequence[Window]]) -> LoadFigures:
    """Over the last three windows, or all where there are fewer; of all clients. Needs one window at least."""
    last = windows[-STABLE_WINDOWS:]
    flat = [client for window in last for client in window]
    latencies = merged(client.latencies for client in flat)
    seconds = sum(window[0].seconds for window in last)
    errors: Counter[str] = Counter()
    for client in flat:
        errors.update(client.errors)
    busy = [sum(client.cpu_sec for client in one) for one in zip(*last)]
    return LoadFigures(
        actions_per_sec=round(latencies.total / seconds, 1),
        latency_us=latencies.percentiles(),
        send_lag_us=merged(client.send_lags for client in flat).percentiles(),
        samples=latencies.total,
        windows=len(last),
        stable=is_stable(windows),
        errors=dict(errors),
        client_busy=round(max(busy) / seconds, 3),
        spread=_spread(last),
    )


def _spread(windows: Sequence[Sequence[Window]]) -> dict[str, tuple[float, float]]:
    """Least and greatest figure of the windows by name; without the names that a window has no figure of."""
    if len(windows) < 2:
        return {}
    sums = [merged(client.latencies for client in window) for window in windows]
    rates = [round(total.total / window[0].seconds, 1) for total, window in zip(sums, windows)]
    single = [{"actions_per_sec": rate, **total.percentiles()} for rate, total in zip(rates, sums)]
    names = [name for name in single[0] if all(name in figures for figures in single)]
    return {name: (min(one[name] for one in single), max(one[name] for one in single)) for name in names}
