"""Windows by hand: what is counted where, and when three of them agree."""

from __future__ import annotations

import numpy as np
import pytest

from simul.common.client.load.windows import (
    Latencies,
    Window,
    WindowClock,
    complete_windows,
    figures,
    is_stable,
    merged,
)


@pytest.mark.parametrize("mean_us", [3.0, 180.0, 4000.0])
def test_percentiles_lie_within_a_bucket_of_the_exact_ones(mean_us: float) -> None:
    seconds = np.random.default_rng(0).gamma(4.0, mean_us / 4.0, 20_000) * 1e-6
    latencies = Latencies()
    for part in np.array_split(seconds, 7):
        latencies.add(part)
    assert latencies.total == 20_000
    for name, got in latencies.percentiles().items():
        exact = np.percentile(np.maximum(seconds * 1e6, 1.0), int(name[1:]))
        assert got == pytest.approx(exact, rel=0.03)


def test_counts_travel_and_add_up() -> None:
    one, two, both = Latencies(), Latencies(), Latencies()
    for latencies, seconds in ((one, [1e-4, 2e-3]), (two, [2e-3, 0.5])):
        latencies.add(np.array(seconds))
        both.add(np.array(seconds))
    assert merged([one.counts(), two.counts()]).counts() == both.counts()
    assert merged([]).percentiles() == {}


def test_what_lies_outside_is_counted_at_the_edge() -> None:
    latencies = Latencies()
    latencies.add(np.array([0.0, 1e-9, 1e6]))
    assert latencies.total == 3
    assert latencies.percentiles()["p50"] == pytest.approx(1.0, rel=0.03)
    assert latencies.percentiles()["p99"] > 1e8


def _window(rows: int, latency_us: float, *, index: int = 0, cpu_sec: float = 0.25) -> Window:
    latencies = Latencies()
    latencies.add(np.full(rows, latency_us * 1e-6))
    return Window(index, 0.5, latencies.counts(), {}, {"ERR_BUSY": 1}, cpu_sec)


def test_warm_up_is_dropped_and_every_row_falls_into_its_window() -> None:
    clock = WindowClock(start=10.0, warm_up_sec=1.0, window_sec=0.5)
    clock.latencies(np.array([1e-3]))  # during warm-up
    assert clock.roll(10.9, cpu=1.0) is None
    assert clock.roll(11.0, cpu=1.0) is None  # warm-up is over; nothing to report yet
    clock.latencies(np.array([1e-3, 2e-3]))
    clock.errors("ERR_BUSY", 3)
    assert clock.roll(11.4, cpu=1.2) is None
    first = clock.roll(11.51, cpu=1.3)
    assert first is not None
    assert (first.index, sum(first.latencies.values()), first.errors) == (0, 2, {"ERR_BUSY": 3})
    assert first.cpu_sec == pytest.approx(0.3)
    second = clock.roll(12.0, cpu=1.3)
    assert second is not None
    assert (second.index, second.latencies, second.errors) == (1, {}, {})


def test_only_windows_of_all_clients_count() -> None:
    a, b = [_window(1, 100.0), _window(2, 100.0)], [_window(3, 100.0)]
    assert complete_windows([a, b]) == [[a[0], b[0]]]
    assert complete_windows([a, []]) == []


@pytest.mark.parametrize(
    ("rows", "latencies_us", "stable"),
    [
        ([100, 105, 109], [500.0, 500.0, 500.0], True),
        ([100, 105, 115], [500.0, 500.0, 500.0], False),
        ([100, 100, 100], [500.0, 500.0, 600.0], False),
        ([10, 100, 100, 100], [500.0] * 4, True),
        ([100, 100], [500.0, 500.0], False),
        ([0, 0, 0], [500.0] * 3, False),
    ],
)
def test_stable_means_the_last_three_agree_in_throughput_and_latency(
    rows: list[int], latencies_us: list[float], stable: bool
) -> None:
    windows = [[_window(count // 2, us), _window(count - count // 2, us)] for count, us in zip(rows, latencies_us)]
    assert is_stable(windows) is stable


def test_figures_are_of_all_clients_over_the_last_three_windows() -> None:
    windows = [[_window(9999, 9.0), _window(1, 9.0)]] + [[_window(300, 100.0), _window(200, 400.0, cpu_sec=0.4)]] * 3
    found = figures(windows)
    assert found.actions_per_sec == pytest.approx(500 * 3 / 1.5)
    assert found.samples == 1500
    assert found.latency_us["p50"] == pytest.approx(100.0, rel=0.03)
    assert found.latency_us["p90"] == pytest.approx(400.0, rel=0.03)
    assert found.errors == {"ERR_BUSY": 6}
    assert found.client_busy == pytest.approx(0.8)
    assert found.stable
    assert found.spread["actions_per_sec"] == (1000.0, 1000.0)


def test_the_spread_is_that_of_single_windows() -> None:
    found = figures([[_window(300, 100.0)], [_window(400, 200.0)], [_window(200, 50.0)]])
    low, high = found.spread["actions_per_sec"]
    assert (low, high) == pytest.approx((400.0, 800.0))
    assert found.spread["p50"] == pytest.approx((50.0, 200.0), rel=0.03)
    assert figures([[_window(300, 100.0)]]).spread == {}
    assert list(figures([[_window(300, 100.0)], [_window(0, 100.0)]]).spread) == ["actions_per_sec"]
