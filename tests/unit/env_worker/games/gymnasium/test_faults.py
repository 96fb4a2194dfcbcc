"""Envs that raise, break their promise or are aborted: what the Gymnasium source makes of it."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from simul.common.protocol.errors import ConfigError, EnvError
from simul.common.protocol.messages import ABORTED, DECISION, TERMINATED
from tests.support.gym_envs import Counting, answer, balanced, make_source, play


@pytest.mark.parametrize("action", [2, 3, -1, 10**6])
def test_an_illegal_action_is_an_error_and_the_others_are_stepped(action):
    source = make_source(Counting, envs=2)
    source.start()
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

    source = make_source(make_env)
    source.start()
    source.act([answer(row) for row in source.poll()])
    source.act([answer(row) for row in source.poll()])
    ended, again = source.poll()
    assert (ended.kind, ended.episode, ended.step, ended.reward) == (ABORTED, 0, 2, 0.0)
    assert (again.kind, again.episode, again.step) == (DECISION, 1, 0)
    assert len(made) == 3
    metrics = source.metrics()
    assert metrics["episodes"] == {"started": 2, "finished": 0, "aborted": {"env_error": 1}, "alive": 1, "truncated": 0}
    assert "RuntimeError: broken cable" in metrics["events"][0]


def test_an_env_that_keeps_failing_ends_the_source():
    source = make_source(lambda: Counting(fail_at=1))
    source.start()
    for _ in range(9):
        source.act([answer(row) for row in source.poll() if row.kind == DECISION])
    last = [answer(row) for row in source.poll() if row.kind == DECISION]
    with pytest.raises(EnvError, match="10 failures in a row; the last: env 0 episode 9 step 1: RuntimeError"):
        source.act(last)
    assert source.metrics()["episodes"]["aborted"] == {"env_error": 10}
    assert balanced(source)


def test_an_env_that_never_starts_is_a_config_error():
    source = make_source(lambda: Counting(fail_reset=True))
    with pytest.raises(ConfigError, match="no reset today"):
        source.start()
    assert source.poll() == []  # the server never heard of those episodes
    assert balanced(source)


def test_abort_sends_no_rows_and_starts_anew():
    source = make_source(Counting, envs=2)
    source.start()
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
    source = make_source(Counting, envs=2, episodes=4)
    source.start()
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
            np.inf if self.what == "reward" else 0.0, False, False,
            {"width": {"action_mask": [1]}, "empty": {"action_mask": [0, 0]}}.get(self.what, {}),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("shape", "has shape [3]; its space declares [2]"),
        ("nan", "not finite"),
        ("reward", "reward is inf"),
        ("width", "[2]"),
        ("empty", "no action"),
    ],
)
def test_a_broken_promise_aborts_the_episode(what, says):
    source = make_source(lambda: Broken(what))
    source.start()
    source.act([answer(row) for row in source.poll()])
    assert [row.kind for row in source.poll()] == [ABORTED, DECISION]
    assert says in source.metrics()["events"][0]
