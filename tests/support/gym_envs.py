"""A gymnasium env that counts, and a source over it that is played."""

import gymnasium
import numpy as np
from gymnasium import spaces

from simul.common.protocol.decisions import Action
from simul.common.protocol.messages import DECISION
from simul.env_worker.games.gymnasium.source import GymnasiumSource


def answer(row, action=0):
    return Action(row.env, row.seat, row.episode, row.step, row.attempt, action, 0.0, 0.0, 1)


def make_source(make_env, **options):
    return GymnasiumSource(make_env, **{"name": "test", "envs": 1, "seed": 7, **options})


def started(make_env, **options):
    source = make_source(make_env, **options)
    source.start()
    return source


def balanced(source):
    e = source.metrics()["episodes"]
    return e["started"] == e["finished"] + sum(e["aborted"].values()) + e["alive"]


class Counting(gymnasium.Env):
    """Ends after `length` steps; reward = number of the step; observation = (episode's seed draw, step)."""

    built = 0

    def __init__(self, length=3, truncates=False, fail_at=-1, fail_reset=False):
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Discrete(3, start=5)
        self.length, self.truncates, self.fail_at, self.fail_reset = length, truncates, fail_at, fail_reset
        self.taken = []
        self.steps = 0
        Counting.built += 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.fail_reset:
            raise RuntimeError("no reset today")
        self.steps, self.draw = 0, self.np_random.random()
        return np.array([self.draw, 0.0]), {"action_mask": [1, 1, 0]}

    def step(self, action):
        assert action in (5, 6)
        self.steps += 1
        if self.steps == self.fail_at:
            raise RuntimeError("broken cable")
        over = self.steps == self.length
        return (
            np.array([self.draw, self.steps]), float(self.steps), over and not self.truncates,
            over and self.truncates, {"action_mask": np.array([1, 1, 0])},
        )  # fmt: skip


def play(source, choose=lambda row: 0, turns=10_000):
    """Answer everything until the source is idle; all rows that came."""
    rows = []
    for _ in range(turns):
        now = source.poll()
        rows += now
        assert balanced(source)
        if not now and source.idle():
            return rows
        source.act([answer(row, choose(row)) for row in now if row.kind == DECISION])
        source.act([answer(row, -1) for row in now if row.kind != DECISION])
    raise AssertionError("the source never became idle")
