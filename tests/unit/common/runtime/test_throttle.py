"""A thread beside the loop rests for as long as it worked, times three; for a little work it does not."""

from __future__ import annotations

import time

import pytest

from simul.common.runtime import throttle
from simul.common.runtime.throttle import MIN_WORK_SEC, PAUSE_FACTOR, CpuThrottle


@pytest.fixture
def slept(monkeypatch) -> list[float]:
    """What was slept, without sleeping."""
    seconds: list[float] = []
    monkeypatch.setattr(throttle.time, "sleep", seconds.append)
    return seconds


def _work(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_work_is_rested_from_in_proportion_and_once(slept) -> None:
    rest = CpuThrottle()
    _work(5 * MIN_WORK_SEC)
    rest()
    rest()
    assert len(slept) == 1
    assert slept[0] >= PAUSE_FACTOR * 5 * MIN_WORK_SEC


def test_little_pieces_are_rested_from_together(slept) -> None:
    rest = CpuThrottle()
    rest()
    assert not slept
    for _ in range(30):
        _work(MIN_WORK_SEC / 10)
        rest()
    assert 2 <= len(slept) <= 10
    assert sum(slept) >= 2 * PAUSE_FACTOR * MIN_WORK_SEC
