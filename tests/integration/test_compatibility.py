"""What an earlier version left is read by this one: a run directory with a checkpoint, made by commit 75cb9e87.

`tests/golden/run_75cb9e87` is a run of CartPole there (6,000 decisions, a network of 8 units), without its logs;
outputs.json holds what its policy answered.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch

import simul
from simul.common.runtime.installation import ROOT
from simul.launch.monitoring.accounting import imbalances
from tests.support.command import Command

FORMER = ROOT / "tests" / "golden" / "run_75cb9e87"
DECISIONS = 7_347  # learned there


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return shutil.copytree(FORMER, tmp_path / "run")


def test_a_former_checkpoint_answers_as_it_did() -> None:
    policy, known = simul.load_policy(FORMER), json.loads((FORMER / "outputs.json").read_text())
    observation, mask = torch.tensor(known["observation"]), torch.tensor(known["mask"])
    state = policy.initial_state(len(mask))
    for step in known["steps"]:
        logits, value, state = policy(observation, mask, state)
        torch.testing.assert_close(logits.clamp(min=-1e9), torch.tensor(step["logits"]))
        torch.testing.assert_close(value, torch.tensor(step["value"]))


def test_a_former_run_is_resumed(run: Path) -> None:
    resumed = Command(
        [sys.executable, "-m", "simul.launch.cli", "up", "cartpole", "--plain", "--run-dir", str(run),
         "--set", "network.options={hidden: 8}", "--set", "workers.count=1", "--stop-after-decisions", "2000"], run,
    )  # fmt: skip
    code, printed = resumed.result()
    assert code == 0, printed
    assert f"Resumed from checkpoint 14 ({DECISIONS:,} decisions learned)." in printed
    assert imbalances(resumed.summary()) == []
    assert resumed.summary()["lifetime_decisions_learned"] > DECISIONS
    rows = (run / "curves.csv").read_text().splitlines()
    assert len(rows) > len((FORMER / "curves.csv").read_text().splitlines())


def test_former_settings_are_read_with_frozen_weights(run: Path) -> None:
    line = [sys.executable, "-m", "simul.launch.cli", "eval", "--json", "--battles", "4", "--checkpoint", str(run)]
    evaluated = Command(line, run)
    code, printed = evaluated.result()
    assert code == 0, printed
