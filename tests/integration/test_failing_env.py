"""A run whose env raises: the view and the log say where, and the run ends where most episodes fail."""

from __future__ import annotations

import pytest

from tests.support.command import Simul

ENV = """
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium import spaces

FAILS = Path(__file__).with_name("fails")


class Failing(gymnasium.Env):
    observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps == 8 and FAILS.exists() and self.np_random.random() < 0.8:
            raise KeyError("no such card")
        return np.zeros(1, np.float32), 0.0, self.steps == 9, False, {}
"""
LINE = 1 + ENV.splitlines().index('            raise KeyError("no such card")')


@pytest.mark.slow  # a unit test of each source has the share, test_supervisor.py a role whose sentence ends the run
def test_a_run_ends_with_a_sentence_where_most_episodes_fail(tmp_path, monkeypatch):
    (tmp_path / "failing_env.py").write_text(ENV)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    (tmp_path / "my.yaml").write_text("game: failing_env:Failing\n")
    simul = Simul(str(tmp_path / "my.yaml"), tmp_path / "run")
    try:
        # a worker that ends before is a failed start
        simul.wait_for(lambda status: status.get("phase") == "training", "the run trains", 250)
        (tmp_path / "fails").touch()
        code, printed = simul.result()
    finally:
        simul.end_now()
    assert code == 1, printed
    place = f"{tmp_path}/failing_env.py:{LINE}"
    sentence = printed.partition("simul: ")[2]
    assert sentence.startswith("worker 0: "), printed
    assert f"episodes failed, more than workers.max_failed_share 0.5: KeyError at {place} (" in sentence
    assert "restarting" not in printed
    assert "learner defaults of small games: batch_steps 2048, minibatches 4, epochs 4, " in printed.splitlines()[0]
    assert any(f"{place}: KeyError: 'no such card' (env " in event for event in simul.summary()["events"])
    log = (tmp_path / "run" / "logs" / "simul-worker-0.log").read_text()
    assert log.count("Traceback") == 1
    assert 'raise KeyError("no such card")' in log
