from types import SimpleNamespace

import numpy as np
import pytest

from simul.common.config.schema import LearnerConfig
from simul.common.protocol.messages import PROTOCOL, ServerHello
from simul.launch.monitoring.curves.figures import LEARNER_FIGURES
from simul.learner.build import learning_schedule
from simul.learner.io.server_handshake import ServerHandshake
from simul.learner.learner import Learner, TrainingProgress
from simul.learner.reports import (
    FIGURES,
    PREDICTION_FIGURES,
    STALL_AFTER_SEC,
    LagAlarm,
    ScheduleNotice,
    StallAlarm,
    TrainingStatistics,
    lag_histogram,
)
from simul.learner.training.trainer import Trained
from simul.learner.training.unroll_trainer import policy_lags
from simul.learner.training.update import UpdateResult


def test_lag_is_counted_per_step_and_the_bootstrap_row_is_no_step(draw):
    statistics = TrainingStatistics(now=100.0)
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
    statistics = TrainingStatistics(now=0.0)
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


STALLED, SILENT = "ALARM: the policy version has not advanced for", "No unroll has arrived for"


@pytest.mark.parametrize(
    ("arrived", "advanced", "said"),
    [
        (  # once, and again only after the version has advanced and stopped
            {n: n for n in range(0, 60, 10)} | {60: 60, 62: 61, 100: 62, 131: 63}, {70: 61},
            {60: f"{STALLED} 60 s, although 60 unrolls", 131: f"{STALLED} 61 s, although 2 unrolls"},
        ),
        ({1: 3, 61: 7}, {}, {61: f"{STALLED} 61 s, although 7 unrolls"}),
        (  # a silence before the first unroll is no time in which nothing was learned
            {60: 0, 92: 9, 150: 10, 153: 11}, {},
            {60: f"{SILENT} 60 s", 153: f"{STALLED} 61 s, although 11 unrolls"},
        ),
        (  # part of a batch, then nothing more
            {59: 0, 61: 0, 62: 0, 101: 53, 160: 53, 161: 53, 1000: 53}, {100: 50},
            {61: f"{SILENT} 61 s", 161: f"{SILENT} 60 s"},
        ),
    ],
)  # fmt: skip
def test_the_alarm_speaks_once_where_nothing_is_learned_and_once_where_nothing_arrives(arrived, advanced, said):
    """Keys are seconds: how many unrolls had arrived, when the version advanced, what the alarm says."""
    alarm, found = StallAlarm(now=0.0), {}
    for now in sorted(arrived | advanced):
        if now in advanced:
            alarm.record_advance(float(now), advanced[now])
        elif sentence := alarm.check(float(now), arrived[now]):
            found[now] = sentence
    assert found.keys() == said.keys()
    assert all(found[now].startswith(words) for now, words in said.items())
    assert alarm.raised == (said[max(said)].startswith("ALARM"))


@pytest.mark.parametrize("token", ["", "the run's"])
def test_no_unroll_is_missed_before_a_server_was_admitted(token: str) -> None:
    handshake = ServerHandshake("the run's", "spec")
    io = SimpleNamespace(version_lag=0)
    parts = SimpleNamespace(
        _io=io, _alarm=StallAlarm(0.0), _lag_alarm=LagAlarm(20), _arrived=0,
        _schedule_notice=ScheduleNotice(0, 0), progress=TrainingProgress(),
    )  # fmt: skip

    def said(now: float) -> list[str]:
        io.met_server = handshake.met_server
        return [sentence for sentence in Learner._alarms(parts, now) if sentence]  # type: ignore[arg-type]

    assert not said(5 * STALL_AFTER_SEC)
    handshake.admit(b"peer", ServerHello(protocol=PROTOCOL, spec_fingerprint="spec", token=token))
    assert not said(6 * STALL_AFTER_SEC - 1)
    late = [] if not token else ["No unroll has arrived for 60 s: is a game played, and recorded?"]
    assert said(6 * STALL_AFTER_SEC) == late


def test_every_figure_of_an_algorithm_is_a_curve():
    assert {*FIGURES, *PREDICTION_FIGURES} <= set(LEARNER_FIGURES)


def test_a_server_far_behind_is_reported_at_most_once_a_minute_while_it_lasts():
    def said(lags: dict[int, int]) -> dict[int, str]:
        alarm = LagAlarm(max_policy_lag=20)
        sentences = {now: alarm.check(float(now), lag) for now, lag in lags.items()}
        return {now: sentence for now, sentence in sentences.items() if sentence}

    assert list(said({0: 10, 1: 10, 3: 11, 4: 30, 5: 0, 6: 30, 7: 0, 63: 30, 64: 0, 100: 0})) == [3, 63]
    assert list(said(dict.fromkeys(range(3, 304), 15))) == [3, 63, 123, 183, 243, 303]
    assert list(said({0: 11, 5: 3, 10: 15, 59: 25, 61: 40, 62: 40})) == [0, 61], "well for a moment within a minute"
    (sentence,) = said({3: 11}).values()
    assert "11 versions behind the newest; beyond 20 (learner.max_policy_lag)" in sentence


def test_where_nothing_is_dropped_for_its_age_no_server_is_too_far_behind():
    schedule = learning_schedule(LearnerConfig(algorithm="alphazero"), 1)
    assert LagAlarm(schedule.max_policy_lag).check(0.0, 10_000) == ""
    assert learning_schedule(LearnerConfig(max_policy_lag=20), 1).max_policy_lag == 20


@pytest.mark.parametrize(
    ("begun", "decisions", "said"),
    [
        (0, (0, 99_000, 100_300, 101_000), {100_300: "ended at 100,000 decisions learned"}),
        (97_204, (97_204, 99_000, 100_000), {100_000: "ended at 100,000 decisions learned"}),
        (98_200, (98_200, 99_000, 101_000), {98_200: "end in 1,800 decisions, at 100,000 decisions learned"}),
        (119_419, (119_419, 120_000), {119_419: "ended at 100,000 decisions learned"}),
    ],
)
def test_the_end_of_the_schedules_is_said_once_and_at_the_start_of_a_run_that_is_finished(begun, decisions, said):
    notice = ScheduleNotice(100_000, begun)
    found = {number: sentence for number in decisions if (sentence := notice.check(number))}
    assert found.keys() == said.keys()
    assert all(said[number] in sentence and "--new-horizon" in sentence for number, sentence in found.items())


def test_where_nothing_is_scheduled_no_schedule_ends():
    constant = LearnerConfig(learning_rate_schedule="constant", entropy_schedule="constant")
    assert not learning_schedule(constant, 1000).changes(1000)
    assert learning_schedule(LearnerConfig(learning_rate_schedule="constant"), 1000).changes(1000)
    assert ScheduleNotice(0, 5).check(10**9) == ""
