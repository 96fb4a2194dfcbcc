"""The verdict over seeds, and the tasks."""

from __future__ import annotations

import pytest

from benchmarks.sb3.results import Comparison, Outcome, speed_promises


def compared(ours: list[float], theirs: list[float]) -> Comparison:
    return Comparison("t", "PPO", [Outcome(mean, 300.0) for mean in ours], [Outcome(mean, 100.0) for mean in theirs])


def test_not_worse_means_that_the_interval_of_the_difference_reaches_zero() -> None:
    # Differences 1, 2, 3: mean 2, standard error 1 / sqrt(3), t = 4.303 with 2 degrees of freedom.
    better = compared([11.0, 12.0, 13.0], [10.0, 10.0, 10.0])
    assert better.difference == pytest.approx((2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5), abs=1e-3)
    assert better.verdict == "PASS"
    assert better.speed == pytest.approx(3.0)
    assert compared([9.0, 11.0, 9.5], [10.0, 10.0, 10.0]).verdict == "PASS"
    assert compared([9.0, 9.1, 8.9], [10.0, 10.0, 10.0]).verdict == "FAIL"


def test_one_seed_has_no_interval_and_no_verdict() -> None:
    one = compared([5.0], [9.0])
    assert (one.difference, one.verdict) == (None, "one seed")


def test_speed_is_promised_against_the_best_of_a_peer() -> None:
    slow = Comparison("toy, 8 envs", "PPO", [Outcome(0.0, 300.0)], [Outcome(0.0, 100.0)], 2.5)
    fast = Comparison("toy, 2 processes", "PPO", [Outcome(0.0, 300.0)], [Outcome(0.0, 150.0)], 2.5)
    (promise,) = speed_promises([slow, fast, compared([5.0], [9.0])])
    assert (promise.found, promise.kept) == (2.0, False)
    assert "toy, 2 processes" in promise.name
    assert speed_promises([slow])[0].kept
    assert slow.verdict == "speed only"
