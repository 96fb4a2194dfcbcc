"""The Gymnasium source as the worker sees it: decisions, ends, rewards, seeds, failures, accounting."""

from __future__ import annotations

import inspect
import os

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from simul.common.errors import ConfigError, EnvError, FailingEnvError
from simul.common.protocol.decisions import Action
from simul.common.protocol.messages import ABORTED, DECISION, GREEDY, RECORD, START, TERMINATED, TRUNCATED
from simul.env_worker.games.base.failures import EpisodeFailures
from simul.env_worker.games.gymnasium.memory import MemoryEnv
from tests.support.gym_envs import Counting, answer, balanced, make_source, play, started


@pytest.mark.parametrize(("truncates", "kind"), [(False, TERMINATED), (True, TRUNCATED)])
def test_rows_of_an_episode(truncates, kind):
    source = started(lambda: Counting(truncates=truncates), episodes=1, reward_scale=0.5, greedy=True)
    rows = play(source)
    assert [(r.env, r.seat, r.episode, r.step, r.attempt) for r in rows] == [(0, 0, 0, s, 0) for s in range(4)]
    assert [r.kind for r in rows] == [DECISION, DECISION, DECISION, kind]
    assert [r.reward for r in rows] == [0.0, 0.5, 1.0, 1.5]  # the last reward rides on the end
    assert [r.flags for r in rows] == [START | RECORD | GREEDY, 0, 0, 0]
    assert all(r.mask.tolist() == [1, 1, 0] and r.mask.dtype == np.uint8 for r in rows[:3])
    assert rows[3].mask is None
    if truncates:
        assert rows[3].observation.tolist()[1] == 3.0
    else:
        assert rows[3].observation is None
    metrics = source.metrics()
    assert metrics["returns"] == {"mean": 6.0, "mean_square": 36.0, "count": 1, "recent_mean": 6.0}  # unscaled
    length = sum(row.kind == DECISION for row in rows if row.episode == 0)
    assert (metrics["recent"]["all"]["return_max"], metrics["recent"]["all"]["length_mean"]) == (6.0, length)
    assert metrics["episode_returns"] == [6.0]
    assert metrics["episodes"]["truncated"] == int(truncates)


def test_the_spec_of_cartpole_and_its_500_steps():
    source = make_source(lambda: gymnasium.make("CartPole-v1"), episodes=1)
    assert (source.spec.observation_size, source.spec.num_actions) == (4, 2)
    assert source.spec.observation_dtype == "float32"
    source.start()

    def balance(row):
        return int(row.observation[2] + 0.4 * row.observation[3] + 0.1 * row.observation[1] > 0)

    rows = play(source, balance)
    assert rows[-1].kind == TRUNCATED
    assert len(rows) == 501
    assert sum(r.reward for r in rows) == 500.0
    assert rows[-1].reward == 1.0
    assert rows[-1].observation.shape == (4,)
    source.close()


@pytest.mark.parametrize(("episodes", "envs"), [(1, 4), (4, 4), (10, 4), (3, 1), (0, 2)])
def test_exactly_so_many_episodes(episodes, envs):
    source = started(Counting, episodes=episodes, envs=envs)
    rows = play(source)
    assert sum(r.kind == TERMINATED for r in rows) == episodes
    assert source.metrics()["episodes"]["finished"] == source.metrics()["episodes"]["started"] == episodes
    assert len(source.metrics()["episode_returns"]) == episodes


def test_the_next_episode_starts_by_itself_until_drained():
    source = started(Counting)
    for _ in range(3):
        source.act([answer(row) for row in source.poll()])
    end, start = source.poll()
    assert (end.kind, end.episode) == (TERMINATED, 0)
    assert (start.kind, start.episode, start.step) == (DECISION, 1, 0)
    assert "episode_returns" not in source.metrics()
    source.drain()
    assert not source.idle()
    row = start
    while row.kind == DECISION:
        source.act([answer(row)])
        (row,) = source.poll()
    assert source.idle()
    assert source.poll() == []


def test_an_episode_depends_on_seed_env_and_episode_only():
    def starts(seed, backwards):
        source = started(Counting, envs=3, episodes=9, seed=seed)
        draws = {}
        while not source.idle():
            rows = source.poll()
            draws.update({(r.env, r.episode): float(r.observation[0]) for r in rows if r.kind == DECISION})
            rows = [r for r in rows if r.kind == DECISION]
            source.act([answer(row) for row in (reversed(rows) if backwards else rows)])
        return draws

    first = starts(1, False)
    assert first == starts(1, True)
    assert len(set(first.values())) == 9
    assert not set(first.values()) & set(starts(2, False).values())


def test_answers_of_the_past_are_ignored():
    source = started(Counting)
    (row,) = source.poll()
    source.act([answer(row), answer(row)])  # the second is a repeat
    (second,) = source.poll()
    assert second.step == 1
    source.act([answer(row)])
    assert source.poll() == []
    late = Action(0, 0, 17, 1, 0, 0, 0.0, 0.0, 1)
    source.act([late])
    assert source.poll() == []


def test_memory_rewards_the_right_answer_only():
    source = started(MemoryEnv, envs=8, episodes=200)
    cues = {}

    def remember(row):
        if row.observation[:4].any():
            cues[row.env] = int(row.observation.argmax())
        return cues[row.env] if row.observation[5] else 3 - cues[row.env]

    rows = play(source, remember)
    assert {r.step for r in rows if r.kind == TERMINATED} == {22}  # cue, 20 blank steps, query
    assert source.metrics()["returns"]["mean"] == 1.0
    draws = np.bincount([int(r.observation.argmax()) for r in rows if r.step == 0], minlength=4)
    assert draws.min() > 30

    blind = started(MemoryEnv, envs=8, episodes=400)
    play(blind)
    assert 0.15 < blind.metrics()["returns"]["mean"] < 0.35


@pytest.mark.parametrize("action", [2, 3, -1, 10**6])
def test_an_illegal_action_is_an_error_and_the_others_are_stepped(action):
    source = started(Counting, envs=2)
    first, second = source.poll()
    with pytest.raises(
        EnvError, match=rf"env 0 episode 0 step 0: action {action} is not legal; expected one of \[0, 1\]"
    ):
        source.act([answer(first, action), answer(second)])
    ended, restarted, stepped = source.poll()
    assert (ended.kind, ended.episode, ended.step) == (ABORTED, 0, 1)
    assert (restarted.env, restarted.episode, restarted.step) == (0, 1, 0)
    assert (stepped.env, stepped.step) == (1, 1)
    assert source.metrics()["episodes"]["aborted"] == {"illegal_action": 1}
    assert balanced(source)


def test_an_env_that_raises_is_aborted_and_built_anew():
    made = []

    def make_env():
        made.append(Counting(fail_at=2 if len(made) == 1 else -1))  # the first one only tells its spaces
        return made[-1]

    source = started(make_env)
    source.act([answer(row) for row in source.poll()])
    source.act([answer(row) for row in source.poll()])
    ended, again = source.poll()
    assert (ended.kind, ended.episode, ended.step, ended.reward) == (ABORTED, 0, 2, 0.0)
    assert (again.kind, again.episode, again.step) == (DECISION, 1, 0)
    assert len(made) == 3
    metrics = source.metrics()
    assert metrics["episodes"] == {"started": 2, "finished": 0, "aborted": {"env_error": 1}, "alive": 1, "truncated": 0}
    assert "RuntimeError: broken cable" in metrics["events"][0]


class Sometimes(Counting):
    """Every second env that is built raises at its first step, in one of two lines."""

    def step(self, action):
        if self.number % 4 == 1:
            raise ZeroDivisionError("first kind")
        if self.number % 4 == 3:
            return super().step(np.zeros(2).reshape(3))  # raised inside a library
        return super().step(action)


def sometimes(envs, numbers, **options):
    made = iter(numbers)

    def make_env():
        env = Sometimes(length=1)
        env.number = next(made)
        return env

    return started(make_env, envs=envs, **options)


def test_too_many_failed_episodes_end_the_source_and_say_where():
    source = sometimes(1, [0, *[1, 3, 1] * 10], max_failed_share=0.5)
    for _ in range(19):
        source.act([answer(row) for row in source.poll() if row.kind == DECISION])
    last = [answer(row) for row in source.poll() if row.kind == DECISION]
    with pytest.raises(FailingEnvError) as caught:
        source.act(last)
    lines = inspect.getsource(Sometimes).splitlines()
    first = inspect.getsourcelines(Sometimes)[1]
    here = os.path.relpath(__file__)
    at = {word: first + next(n for n, line in enumerate(lines) if word in line) for word in ("first kind", "reshape")}
    assert str(caught.value).startswith(
        f"20 of the last 20 episodes failed, more than workers.max_failed_share 0.5: "
        f"{here}:{at['first kind']}: ZeroDivisionError: first kind (13 times), "
        f"{here}:{at['reshape']}: ValueError: cannot reshape array of size 2 into shape (3,) (7 times)."
    )
    event = source.metrics()["events"][0]
    assert event.startswith(f"{here}:{at['first kind']}: ZeroDivisionError: first kind (env 0 episode 0 step 1); a new")
    assert balanced(source)


def test_failures_below_the_share_go_on():
    failures = EpisodeFailures(0.5, envs=1)
    for _ in range(100):
        failures.add_started(0)
        failures.add_finished(0)
        failures.add_started(0)
        failures.add_failed(0, RuntimeError("x"))
        failures.check()
    failures.add_started(0)
    failures.add_failed(0, RuntimeError("x"))  # the oldest was a finished one
    with pytest.raises(FailingEnvError, match=r"51 of the last 100 .*RuntimeError: x \(51 times\)"):
        failures.check()


def test_failed_episodes_end_sooner_and_do_not_stand_for_those_that_run():
    """128 envs, a failure in one of 1,000 steps, 200 steps an episode: 18% of the episodes fail."""
    failures, draw, steps = EpisodeFailures(0.5, envs=128), np.random.default_rng(1), np.zeros(128)
    failed = finished = 0
    for env in range(128):
        failures.add_started(env)
    for _ in range(1000):
        for env in range(128):
            steps[env] += 1
            if draw.random() < 0.001:
                failures.add_failed(env, RuntimeError("x"))
                failed += 1
            elif steps[env] == 200:
                failures.add_finished(env)
                finished += 1
            else:
                continue
            steps[env] = 0
            failures.add_started(env)
            failures.check()
    assert 100 < failed < 0.25 * finished


@pytest.mark.parametrize("length", ["the same", "uniform"])
def test_episodes_that_all_fail_late_are_found(length):
    failures, draw = EpisodeFailures(0.9, envs=64), np.random.default_rng(1)
    for env in range(64):
        failures.add_started(env)
    left = draw.integers(1, 200, 64) if length == "uniform" else np.full(64, 200)

    with pytest.raises(FailingEnvError):  # noqa: PT012
        for _ in range(1000):
            left -= 1
            for env in np.flatnonzero(left == 0):
                failures.add_failed(env, RuntimeError("x"))
                failures.check()
                left[env] = draw.integers(1, 200) if length == "uniform" else 200
                failures.add_started(env)


def test_one_episode_that_does_not_end_hides_no_failures():
    failures = EpisodeFailures(0.5, envs=2)
    failures.add_started(0)
    for _ in range(50):
        failures.add_started(1)
        failures.add_failed(1, RuntimeError("x"))
    with pytest.raises(FailingEnvError):
        failures.check()


@pytest.mark.parametrize("where", ["fail_at", "fail_reset"])
def test_a_share_of_1_never_ends_the_source(where):
    class Late(Counting):
        resets = 0

        def reset(self, *, seed=None, options=None):
            Late.resets += 1
            self.fail_reset = where == "fail_reset" and Late.resets > 1
            self.fail_at = 2 if where == "fail_at" else -1
            return super().reset(seed=seed)

    source = started(Late, max_failed_share=1.0)
    for _ in range(200):
        source.act([answer(row) for row in source.poll() if row.kind == DECISION])
        assert balanced(source)
        assert not source.idle()
    assert source.metrics()["episodes"]["aborted"]["env_error"] > 60
    source.drain()
    source.abort([0], "shutdown")
    source.poll()
    assert source.idle()


def test_the_first_traceback_of_each_kind_is_logged(caplog):
    source = sometimes(1, [0, *[1, 3] * 9])
    for _ in range(10):
        source.act([answer(row) for row in source.poll() if row.kind == DECISION])
    assert [record.getMessage().split(" at ")[0] for record in caplog.records] == [
        "the first ZeroDivisionError",
        "the first ValueError",
    ]
    assert "in step" in caplog.text
    assert "Traceback" in caplog.text


def test_an_env_that_never_starts_is_a_config_error():
    source = make_source(lambda: Counting(fail_reset=True))
    with pytest.raises(ConfigError, match="no reset today"):
        source.start()
    assert source.poll() == []  # the server never heard of those episodes
    assert balanced(source)


def test_abort_sends_no_rows_and_starts_anew():
    source = started(Counting, envs=2)
    source.act([answer(row) for row in source.poll()])
    source.abort([1, 1], "server_lost")
    rows = source.poll()
    assert [(r.env, r.episode, r.step, r.kind) for r in rows] == [(0, 0, 1, DECISION), (1, 1, 0, DECISION)]
    assert source.metrics()["episodes"]["aborted"] == {"server_lost": 1}
    source.close()
    assert source.metrics()["episodes"]["aborted"] == {"server_lost": 1, "shutdown": 2}
    assert source.idle()
    assert balanced(source)


def test_an_aborted_episode_of_an_evaluation_is_played_again():
    source = started(Counting, envs=2, episodes=4)
    waiting = source.poll()
    source.abort([0], "server_lost")
    source.act([answer(row) for row in waiting])  # the answer for env 0 comes too late
    rows = play(source)
    assert {(r.env, r.episode) for r in rows if r.kind == TERMINATED} == {(0, 1), (1, 0), (0, 2), (1, 1)}
    assert source.metrics()["episodes"] == {
        "started": 5, "finished": 4, "aborted": {"server_lost": 1}, "alive": 0, "truncated": 0,
    }  # fmt: skip


class Broken(gymnasium.Env):
    """Breaks one promise at the first step."""

    def __init__(self, what):
        self.observation_space = spaces.Box(0, 1, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.what = what

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return (
            {"shape": np.zeros(3), "nan": np.array([np.nan, 0])}.get(self.what, np.zeros(2)),
            {"reward": np.inf, "huge": 1e308}.get(self.what, 0.0), False, False,
            {"width": {"action_mask": [1]}, "empty": {"action_mask": [0, 0]}}.get(self.what, {}),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("shape", "has shape [3]; its space declares [2]"),
        ("nan", "not finite"),
        ("reward", "the reward of seat 0 is inf"),
        (
            "huge",
            "EnvError: test: the reward of seat 0 is 1e+308; expected a finite number, at most 3.4e+38 (float32) "
            "(env 0 episode 0 step 1); a new env",
        ),
        ("width", "[2]"),
        ("empty", "EnvError: test: seat 0 must act, and no action is legal"),
    ],
)
def test_a_broken_promise_aborts_the_episode(what, says):
    source = started(lambda: Broken(what))
    source.act([answer(row) for row in source.poll()])
    assert [row.kind for row in source.poll()] == [ABORTED, DECISION]
    assert says in source.metrics()["events"][0]


def test_rewards_that_a_row_cannot_carry_are_one_kind_of_failure_and_end_the_source():
    class Growing(Counting):
        def step(self, action):
            observation, _, *others = super().step(action)
            return observation, self.draw * 1e300, *others

    source = started(Growing, max_failed_share=0.5)
    with pytest.raises(FailingEnvError, match=r"20 of the last 20 .*: test: the reward of seat 0 is .* \(20 times\)"):
        play(source)
    assert len(source.metrics()["events"]) == 2  # the 1st and the 10th


def test_a_reward_is_held_against_the_limit_as_it_is_sent():
    class Large(Counting):
        def step(self, action):
            observation, _, *others = super().step(action)
            return observation, 1e30, *others

    for scale, failed in ((1e8, 0), (1e9, 1)):
        source = started(Large, reward_scale=scale)
        source.act([answer(row) for row in source.poll()])
        assert sum(source.metrics()["episodes"]["aborted"].values()) == failed
