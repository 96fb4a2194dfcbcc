"""The window grows as the power law says; updates are due so that each sample is drawn so many times in the mean."""

from __future__ import annotations

import numpy as np
import pytest

from simul.learner.replay.schedule import ReplayWindow, UseSchedule


def test_the_window_holds_everything_first_and_then_a_share_that_shrinks() -> None:
    window = ReplayWindow(first=1000, exponent=0.75, slope=0.4)
    assert [window.size(total) for total in (0, 1, 999, 1000)] == [0, 1, 999, 1000]
    sizes = [window.size(total) for total in range(1000, 200_000, 1000)]
    steps = np.diff(sizes)
    assert (steps > 0).all()
    assert (np.diff(steps) <= 1).all()  # rounded down
    assert steps[0] == pytest.approx(0.4 * 1000, rel=0.15)  # the slope at the start
    # n / c = 81: 81^0.75 = 27, so 1 + 0.4 * 26 / 0.75 times c
    assert window.size(81_000) == int(1000 * (1 + 0.4 * 26 / 0.75))
    assert ReplayWindow(first=10, exponent=1.0, slope=1.0).size(1234) == 1234


@pytest.mark.parametrize(("uses", "batch", "arrivals"), [(4.0, 64, 7), (1.0, 32, 100), (0.5, 10, 3), (6.5, 256, 31)])
def test_so_many_draws_are_made_for_each_sample(uses: float, batch: int, arrivals: int) -> None:
    schedule = UseSchedule(uses, batch, min_samples=100)
    held = drawn = 0
    for _ in range(200):
        held += arrivals
        schedule.count_arrived(arrivals)
        while schedule.due(held):
            schedule.count_drawn()
            drawn += batch
        if held >= 100:
            assert uses * held - batch < drawn <= uses * held
        else:
            assert drawn == 0
    assert schedule.uses == drawn / held


def test_nothing_is_owed_for_what_a_former_life_stored() -> None:
    schedule = UseSchedule(4.0, 10, min_samples=5)
    assert not schedule.due(held=10_000)
    schedule.count_arrived(3)
    assert schedule.due(held=10_003)
    schedule.count_drawn()
    assert not schedule.due(held=10_003)
