"""The verdict over seeds, and the tasks."""

from __future__ import annotations

import time

import pytest

from benchmarks.sb3.results import Comparison, Outcome, speed_promises
from benchmarks.sb3.tasks import SPEED_TASKS, TASKS
from benchmarks.sb3.toy import STEP_SEC, Toy
from simul.common.config.loader import load_config


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


def test_a_step_of_the_toy_takes_its_processor_time() -> None:
    env = Toy()
    env.reset(seed=1)
    began = time.thread_time()
    ends = [env.step(0)[2] for _ in range(128)]
    assert time.thread_time() - began >= 128 * STEP_SEC
    assert ends == [False] * 127 + [True]


@pytest.mark.parametrize("task", [*TASKS, *SPEED_TASKS], ids=lambda task: task.name)
def test_our_side_of_every_task_is_a_valid_configuration(task) -> None:
    changes = (f"gymnasium.id={task.env}", f"learner.total_decisions={task.steps}", *task.overrides)
    assert load_config(task.config, changes).gymnasium.id == task.env
