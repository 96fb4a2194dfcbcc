"""`simul sweep` as a person runs it: killed in the middle of a trial, it goes on with that trial."""

from __future__ import annotations

import signal
import sys
from importlib.util import find_spec

import psutil
import pytest

from simul.common.checkpoints.meta import checkpoint_folders
from simul.common.config.loader import load_config
from tests.support.command import Command
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.slow,  # two runs of CartPole
    pytest.mark.skipif(not find_spec("optuna"), reason="the extra [sweep] is not installed"),
]

SPACE = "learner.learning_rate: {low: 1e-3, high: 3e-3, log: true}\nnetwork.options.hidden: {choices: [16, 32]}\n"


def test_a_sweep_that_is_killed_resumes_its_trial(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    study, first = tmp_path / "study", tmp_path / "study" / "trial-0000"
    line = [
        sys.executable, "-m", "simul.launch.cli", "sweep", "cartpole", "--space", str(tmp_path / "space.yaml"),
        "--trials", "2", "--study", str(study), "--stop-after-decisions", "12000", "--set", "evaluation.games=3",
        "--set", "evaluation.every_decisions=4000", "--set", "learner.checkpoint_every_sec=0.5",
    ]  # fmt: skip
    command = Command(line, tmp_path / "first")
    try:
        wait_for(lambda: checkpoint_folders(first / "checkpoints"), timeout_sec=120.0)
        family = psutil.Process(command.process.pid).children(recursive=True)
        command.process.send_signal(signal.SIGKILL)
        command.process.wait()
        psutil.wait_procs(family, timeout=120.0)
        assert not any(each.is_running() for each in family)  # nothing is left behind
    finally:
        command.end_now()
    again = Command(line, tmp_path / "second")
    try:
        code, printed = again.result()
    finally:
        again.end_now()
    assert code == 0, printed
    assert "trial 0 is resumed at " in printed
    assert "trial 0 finished: score" in printed
    assert "trial 1 finished: score" in printed
    best = load_config(study / "best.yaml")
    assert 1e-3 <= best.learner.learning_rate <= 3e-3
    assert (study / "sweep.png").exists()
