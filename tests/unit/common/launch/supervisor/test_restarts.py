"""When the dead are started again."""

from __future__ import annotations

from simul.common.launch.supervisor.restarts import MOST_DEATHS, MOST_FAILED_STARTS, WINDOW_SEC, RestartPolicy


def test_restarts_are_quick_and_back_off_below_a_second():
    policy = RestartPolicy()
    delays = [policy.died(10.0 * n) for n in range(5)]
    assert delays[0] == 0.1
    assert delays == sorted(delays)
    assert max(delays) < 1.0


def test_gives_up_after_ten_deaths_in_two_minutes():
    policy = RestartPolicy()
    assert [policy.died(n) is None for n in range(MOST_DEATHS)] == [False] * (MOST_DEATHS - 1) + [True]


def test_old_deaths_are_forgotten():
    policy = RestartPolicy()
    for n in range(100):
        assert policy.died(15.0 * n) is not None
    assert policy.died(10_000.0) == 0.1


def test_lives_that_never_became_ready_count_however_long_they_took():
    policy = RestartPolicy()
    assert policy.died(0.0, was_ready=False) is not None
    assert policy.died(1.0 * WINDOW_SEC, was_ready=True) is not None  # one that worked: it is not the start that fails
    ends = [policy.died((2 + n) * WINDOW_SEC, was_ready=False) is None for n in range(MOST_FAILED_STARTS)]
    assert ends == [False] * (MOST_FAILED_STARTS - 1) + [True]
