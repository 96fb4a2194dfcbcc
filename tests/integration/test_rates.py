"""A run that is resumed at ten million decisions shows the rate of this start from the first one on."""

from __future__ import annotations

import csv
import json
import struct

import pytest

from tests.support.command import Simul

BEFORE = 10_000_000
ENV = """
import os, struct, time

import gymnasium
import numpy as np
from gymnasium import spaces

# Each step leaves its time, so that the test itself counts the decisions of any moment.
TIMES = os.open(os.environ["STEP_TIMES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


class Timed(gymnasium.Env):
    observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        os.write(TIMES, struct.pack("<d", time.time()))
        return np.zeros(1, np.float32), 1.0, self.steps == 50, False, {}
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """A function that starts, or resumes, a run of the env above."""
    (tmp_path / "timed_env.py").write_text(ENV)
    (tmp_path / "my.yaml").write_text(
        "game: timed_env:Timed\nworkers: {envs: 4}\nlearner: {batch_steps: 256, checkpoint_every_sec: 1.0}\n"
        "notice_every_decisions: 0\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("STEP_TIMES", str(tmp_path / "times"))
    started = []

    def begin() -> Simul:
        started.append(Simul(str(tmp_path / "my.yaml"), tmp_path / "run"))
        return started[-1]

    yield begin
    for one in started:
        one.end_now()


@pytest.mark.timeout(600)
@pytest.mark.slow  # two runs; tests/unit/launch/monitoring has the arithmetic
def test_the_first_rate_after_a_resume_is_that_of_the_decisions_in_its_time(start, tmp_path):
    run = start()
    run.wait_for(lambda status: status.get("learner", {}).get("updates"))
    assert run.finish()[0] == 0
    for meta in (tmp_path / "run" / "checkpoints").glob("0*/meta.json"):
        meta.write_text(json.dumps({**json.loads(meta.read_bytes()), "decisions": BEFORE}))
    (tmp_path / "times").unlink()

    run = start()
    run.wait_for(lambda status: status.get("phase") == "starting")  # not the last status of the run before
    first = run.wait_for(lambda status: status["decisions_per_sec"] is not None and status)
    run.wait_for(lambda status: status["figures"].get("run/decisions_per_sec"))
    code, printed = run.finish()
    assert code == 0, printed
    assert f"({BEFORE:,.0f} decisions learned)" in printed
    data = (tmp_path / "times").read_bytes()
    times = [at for (at,) in struct.iter_unpack("<d", data[: len(data) // 8 * 8])]

    def own_rate(begin: float, end: float) -> float:
        return sum(begin < at <= end for at in times) / (end - begin)

    ready = first["time"] - first["ready_sec"]
    end = ready + first["counted_sec"]["inference_server"]
    assert first["decisions_per_sec"] == pytest.approx(own_rate(end - first["rates_over_sec"], end), rel=0.2)
    assert first["run_decisions"] > BEFORE
    with (tmp_path / "run" / "curves.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if float(row["decisions"]) > BEFORE]
    rates = [float(row["run/decisions_per_sec"]) for row in rows if row["run/decisions_per_sec"]]
    assert rates
    assert max(rates) < 1000 * own_rate(times[0], times[-1]), "nothing counts from the first step of the run"
    summary = run.summary()
    own = len(times) / summary["seconds"]  # all of this start, those before readiness included
    assert summary["decisions_per_sec"] == pytest.approx(own, rel=0.2)
    assert summary["decisions"] < BEFORE < summary["lifetime_decisions_learned"]
