"""Self-play by search through all processes: leaves, samples, learning, books."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from simul.common.nets.io import load_policy
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json
from simul.common.runtime.installation import ROOT
from simul.launch.monitoring.accounting import imbalances

CONFIG = """
game: tests.support.small_games:TicTacToe
network: {name: mlp_lstm, options: {hidden: 16, memory: false}}
workers: {count: 1, envs: 16}
learner: {algorithm: alphazero, batch_steps: 128, minibatches: 2, past_every_decisions: 300}
replay: {min_samples: 128, memory_mb: 8, disk_mb: 8}
search: {simulations: 8}
"""


@pytest.mark.slow  # .ci/long runs it; samples on their way to a real learner, tests/integration/test_samples.py sees
@pytest.mark.timeout(900)
def test_a_searched_game_is_learned_and_the_books_balance(tmp_path: Path) -> None:
    (tmp_path / "search.yaml").write_text(CONFIG)
    command = [
        sys.executable, "-m", "simul.launch.cli", "up", str(tmp_path / "search.yaml"), "--run-dir",
        str(tmp_path / "run"), "--plain", "--stop-after-decisions", "500",
    ]  # fmt: skip
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=500)
    assert run.returncode == 0, run.stdout
    summary = read_json(RunDir(tmp_path / "run"), "summary.json")
    assert summary["policy_version"] >= 2
    accounts = summary["accounting"]
    assert accounts["samples_submitted"]["accepted"] >= 500
    assert accounts["samples_received"]["stored"] > 0
    assert imbalances(summary) == []
    assert load_policy(tmp_path / "run").spec.num_actions == 9
