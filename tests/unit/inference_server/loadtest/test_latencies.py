"""Buckets against numpy's percentiles of the very numbers."""

import numpy as np
import pytest

from simul.inference_server.loadtest.latencies import Latencies, merged


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
