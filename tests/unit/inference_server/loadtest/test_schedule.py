"""Arrivals that do not depend on when one looks."""

import numpy as np
import pytest

from simul.inference_server.loadtest.schedule import PoissonSchedule


def test_every_arrival_comes_once_and_in_order_however_one_looks() -> None:
    often, once = PoissonSchedule(20_000.0, 5.0, seed=3), PoissonSchedule(20_000.0, 5.0, seed=3)
    parts = [often.due(now) for now in np.linspace(5.0, 6.0, 57)]
    together = once.due(6.0)
    assert np.array_equal(np.concatenate(parts), together)
    assert bool((np.diff(together) >= 0).all())
    assert together[0] > 5.0
    assert together[-1] <= 6.0 < once.next


def test_gaps_are_exponential_with_the_offered_rate() -> None:
    times = PoissonSchedule(1000.0, 0.0, seed=1).due(60.0)
    gaps = np.diff(times)
    assert len(times) == pytest.approx(60_000, rel=0.02)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.02)  # of an exponential they are equal


def test_nothing_is_due_before_the_start() -> None:
    schedule = PoissonSchedule(10.0, 100.0, seed=0)
    assert schedule.due(100.0).size == 0
    assert schedule.next > 100.0
