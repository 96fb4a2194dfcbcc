from types import SimpleNamespace

import numpy as np
import pytest

from simul.common.config.schema import LearnerConfig
from simul.common.protocol.messages import PROTOCOL, ServerHello
from simul.launch.monitoring.curves.figures import LEARNER_FIGURES
from simul.learner.__main__ import _schedule
from simul.learner.learner import Learner, linear
from simul.learner.reports import FIGURES, STALL_AFTER_SEC, LagAlarm, StallAlarm, Statistics, lag_histogram
from simul.learner.trainer import Trained
from simul.learner.unroll_trainer import policy_lags
from simul.learner.update import UpdateResult
from simul.learner.weight_publisher import ServerHandshake


def test_lag_is_counted_per_step_and_the_bootstrap_row_is_no_step(draw):
    statistics = Statistics(now=100.0)
    lag = policy_lags([draw.unroll(3, version=10), draw.unroll(5, version=4)], version=10)
    result = UpdateResult({"entropy": 0.5}, np.zeros(0, np.float32), np.ones(2, bool), steps=1, skipped=0)
    statistics.count_trained(Trained(result, lag.size, lag.size, 2, lag, reward_mean=0.25, largest_reward=3.0))
    assert (statistics.decisions, statistics.unrolls, statistics.updates) == (8, 2, 1)
    assert (statistics.reward_mean, statistics.largest_reward) == (0.25, 3.0)
    assert statistics.lag()["mean"] == pytest.approx(5 * 6 / 8)
    assert statistics.lag()["max"] == 6
    assert statistics.lag()["histogram"] == {"0": 3, "5-8": 5}
    statistics.wait_sec = 1.0
    assert statistics.rate(104.0) == 2.0
    assert statistics.busy_share(104.0) == 0.75


def test_samples_that_are_drawn_again_count_in_the_lag_and_not_in_the_decisions():
    statistics = Statistics(now=0.0)
    result = UpdateResult({}, np.zeros(0, np.float32), np.ones(4, bool), steps=0, skipped=0)
    for _ in range(2):
        statistics.count_trained(Trained(result, 1, 1, 0, np.array([1, 2, 3, 6]), reward_mean=0.0, largest_reward=1.0))
    assert statistics.decisions == 2
    assert statistics.lag()["mean"] == 3
    nothing = Trained(result, 0, 0, 0, np.zeros(0, np.int64), reward_mean=0.0, largest_reward=1.0)
    statistics.count_trained(nothing)
    assert statistics.lag()["recent_max"] == 6


def test_histogram_covers_every_lag():
    lag = np.arange(40)
    assert lag_histogram(lag) == {"0": 1, "1": 1, "2": 1, "3-4": 2, "5-8": 4, "9-16": 8, "17+": 23}


def test_the_alarm_speaks_once_where_unrolls_arrive_and_nothing_is_learned():
    alarm = StallAlarm(now=0.0)
    for now in range(0, 61, 10):
        assert not alarm.check(now - 1.0, arrived=now)
    rare = StallAlarm(now=0.0)
    assert not rare.check(1.0, arrived=3)
    assert "not advanced for 61 s, although 7 unrolls" in rare.check(61.0, arrived=7)
    assert "not advanced for 60 s, although 60 unrolls" in alarm.check(60.0, arrived=60)
    assert alarm.raised
    assert not alarm.check(STALL_AFTER_SEC + 2, arrived=61)
    alarm.record_advance(70.0, arrived=61)
    assert not alarm.raised
    assert not alarm.check(100.0, arrived=62)
    assert alarm.check(131.0, arrived=63)


def test_a_silence_before_the_first_unroll_is_no_time_in_which_nothing_was_learned():
    alarm = StallAlarm(now=0.0)
    assert alarm.check(STALL_AFTER_SEC, arrived=0).startswith("No unroll has arrived")
    assert not alarm.check(92.0, arrived=9)
    assert not alarm.check(150.0, arrived=10)
    assert "not advanced for 61 s, although 11 unrolls" in alarm.check(153.0, arrived=11)


@pytest.mark.parametrize("token", ["", "the run's"])
def test_no_unroll_is_missed_before_a_server_was_admitted(token: str) -> None:
    handshake = ServerHandshake("the run's", "spec")
    receiver = SimpleNamespace(version_lag=0)
    parts = SimpleNamespace(_receiver=receiver, _alarm=StallAlarm(0.0), _lag_alarm=LagAlarm(20), _arrived=0)

    def said(now: float) -> list[str]:
        receiver.met_server = handshake.met_server
        return [sentence for sentence in Learner._alarms(parts, now) if sentence]  # type: ignore[arg-type]

    assert not said(5 * STALL_AFTER_SEC)
    handshake.admit(b"peer", ServerHello(protocol=PROTOCOL, spec_fingerprint="spec", token=token))
    assert not said(6 * STALL_AFTER_SEC - 1)
    late = [] if not token else ["No unroll has arrived for 60 s: is a game played, and recorded?"]
    assert said(6 * STALL_AFTER_SEC) == late


def test_the_alarm_speaks_once_where_no_unroll_arrives_any_longer():
    alarm = StallAlarm(now=0.0)
    assert not alarm.check(STALL_AFTER_SEC - 1, arrived=0)
    assert alarm.check(STALL_AFTER_SEC + 1, arrived=0).startswith("No unroll has arrived for 61 s")
    assert not alarm.check(STALL_AFTER_SEC + 1, arrived=0)
    alarm.record_advance(100.0, arrived=50)
    assert not alarm.check(101.0, arrived=53)  # part of a batch; then nothing more
    assert not alarm.check(160.0, arrived=53)
    assert alarm.check(161.0, arrived=53).startswith("No unroll has arrived for 60 s")
    assert not alarm.check(1000.0, arrived=53)
    assert not alarm.raised


def test_every_figure_of_an_algorithm_is_a_curve():
    assert set(FIGURES) <= set(LEARNER_FIGURES)


def test_schedules_end_at_their_last_value():
    assert [linear(1.0, 0.2, n, 100) for n in (0, 50, 100, 500)] == pytest.approx([1.0, 0.6, 0.2, 0.2])


def test_a_server_far_behind_is_reported_once_a_minute_while_it_lasts_and_after_it_was_well():
    alarm = LagAlarm(max_policy_lag=20)
    assert [alarm.check(float(now), 10) for now in range(3)] == ["", "", ""]
    assert "11 versions behind the newest; beyond 20 (learner.max_policy_lag)" in alarm.check(3.0, 11)
    assert alarm.check(4.0, 30) == ""
    assert alarm.check(5.0, 0) == ""
    assert alarm.check(6.0, 30) == "", "at most one a minute"
    assert alarm.check(7.0, 0) == ""
    assert "30 versions" in alarm.check(63.0, 30)
    said = [now for now in range(64, 304) if alarm.check(float(now), 15)]
    assert said == [123, 183, 243, 303]


def test_a_server_that_was_well_for_a_moment_within_a_minute_is_reported_when_that_is_over():
    alarm = LagAlarm(max_policy_lag=20)
    lags = {0: 11, 5: 3, 10: 15, 30: 15, 59: 25, 61: 40, 62: 40}
    assert [now for now, lag in lags.items() if alarm.check(float(now), lag)] == [0, 61]


def test_where_nothing_is_dropped_for_its_age_no_server_is_too_far_behind():
    schedule = _schedule(LearnerConfig(algorithm="alphazero"))
    assert LagAlarm(schedule.max_policy_lag).check(0.0, 10_000) == ""
    assert _schedule(LearnerConfig(max_policy_lag=20)).max_policy_lag == 20
