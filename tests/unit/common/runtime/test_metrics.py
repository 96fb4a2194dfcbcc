"""Timings: percentiles of a recent window, and the histogram of a whole life. Stages: all of a loop's time."""

from __future__ import annotations

import random
import time

from simul.common.runtime.metrics import Stages, Timings

BOUNDS = (50.0, 100.0, 200.0, 400.0)


def test_the_histogram_keeps_what_the_percentiles_forget():
    timings = Timings(window=10)
    for _ in range(7):
        for microseconds in (10.0, 60.0, 150.0, 1000.0):
            timings.add(microseconds, times=3)
    below, total, sum_us = timings.histogram(BOUNDS)
    assert (below, total) == ((21, 42, 63, 63), 84)
    assert abs(sum_us / (21 * 1220.0) - 1) < 0.05
    timings.add(5.0, times=40)
    assert timings.percentiles()["p50"] < 6
    assert timings.histogram(BOUNDS).total == 124


def test_the_histogram_agrees_with_plain_counting():
    rng = random.Random(1)
    timings, entries = Timings(window=50), [rng.lognormvariate(5, 1.5) for _ in range(2000)]
    for entry in entries:
        timings.add(entry)
    below, total, sum_us = timings.histogram(BOUNDS)
    assert total == 2000
    assert abs(sum_us / sum(entries) - 1) < 0.02
    for bound, n in zip(BOUNDS, below):
        assert sum(e <= bound / 1.06 for e in entries) <= n <= sum(e <= bound * 1.06 for e in entries)


def test_nothing_yet():
    assert Timings().histogram(BOUNDS) == ((0, 0, 0, 0), 0, 0)
    assert Timings().percentiles() == {}


def test_stages_add_up_to_the_wall_clock_and_each_has_its_own_time():
    stages = Stages(("short", "long"))
    time.sleep(0.05)  # before the loop: belongs to none
    stages.start()
    for _ in range(3):
        time.sleep(0.005)
        stages.lap("short")
        time.sleep(0.02)
        least = stages.elapsed_sec
        stages.lap("long")
    assert stages.seconds["short"] >= 3 * 0.005
    assert stages.seconds["long"] >= 3 * 0.02
    assert least <= sum(stages.seconds.values()) + 1e-6
    assert sum(stages.seconds.values()) <= stages.elapsed_sec
