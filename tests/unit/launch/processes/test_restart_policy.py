"""When a process is restarted, and when one that is late to start is named."""

from __future__ import annotations

from simul.launch.processes.restart_policy import (
    MOST_DEATHS,
    MOST_FAILED_STARTS,
    RESTART_WINDOW_SEC,
    START_ALERT_SEC,
    RestartPolicy,
    StartAlerts,
)


def test_restarts_are_quick_back_off_below_a_second_and_end_after_ten_deaths_in_two_minutes():
    policy = RestartPolicy()
    delays = [policy.record_death(n) for n in range(MOST_DEATHS)]
    assert delays[0] == 0.1
    assert delays.pop() is None
    assert delays == sorted(delays)
    assert max(delays) < 1.0
    policy = RestartPolicy()  # old deaths are forgotten
    for n in range(100):
        assert policy.record_death(15.0 * n) is not None
    assert policy.record_death(10_000.0) == 0.1


def test_lives_that_never_became_ready_count_however_long_they_took():
    policy, lives = RestartPolicy(), [False, True, *[False] * MOST_FAILED_STARTS]  # one worked: counted from there
    delays = [policy.record_death(n * RESTART_WINDOW_SEC, was_ready=ready) for n, ready in enumerate(lives)]
    assert [delay is None for delay in delays] == [False] * (MOST_FAILED_STARTS + 1) + [True]


def _named(cpu_sec, until_sec):
    """(seconds, idle, slow) of each look that names a process; `cpu_sec`: by index, a function of the time."""
    alerts, named = StartAlerts(began=100.0), []
    for second in range(1, until_sec + 1):
        if alerts.due(100.0 + second):
            idle, slow = alerts.look(100.0 + second, {index: used(second) for index, used in enumerate(cpu_sec)})
            named += [(second, idle, slow)] * bool(idle or slow)
    return named


def test_a_process_that_works_while_it_starts_is_named_later_and_more_rarely_than_one_that_hangs():
    assert START_ALERT_SEC == 15.0
    loaded, hangs = lambda sec: 0.1 * sec, lambda sec: min(2.0, 1.0 * sec)
    assert _named([hangs], 130) == [(15, [0], []), (30, [0], []), (60, [0], []), (120, [0], [])]
    assert _named([loaded], 300) == [(30, [], [0]), (120, [], [0])]
    assert _named([loaded, hangs], 31) == [(15, [1], []), (30, [1], [0])]
    assert _named([lambda sec: min(2.0, 0.1 * sec)], 40) == [(25, [0], [])], "it hangs from 20 s on"
