"""Self-play by search through all processes: leaves, samples, learning, books."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


@contextmanager
def _started(folder: Path, *settings: str) -> Iterator[subprocess.Popen[str]]:
    """`simul up`, which does not outlive the block."""
    (folder / "search.yaml").write_text(CONFIG)
    chosen = [part for setting in settings for part in ("--set", setting)]
    command = [
        sys.executable, "-m", "simul.launch.cli", "up", str(folder / "search.yaml"), "--run-dir", str(folder / "run"),
        "--plain", *chosen,
    ]  # fmt: skip
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield run
    finally:
        run.kill()
        run.communicate()


def _summary(run: subprocess.Popen[str], folder: Path) -> dict[str, Any]:
    output, _ = run.communicate(timeout=500)
    assert run.returncode == 0, output
    return read_json(RunDir(folder / "run"), "summary.json")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "settings",
    [
        (),
        pytest.param(  # tests/unit/env_worker/search has both methods
            ("search.method=puct", "opponents={self_play: 0.5, past: 0.3, random: 0.2}"), marks=pytest.mark.slow
        ),
    ],
)
def test_a_searched_game_is_learned_and_the_books_balance(tmp_path: Path, settings: tuple[str, ...]) -> None:
    with _started(tmp_path, "stop_after_decisions=1500", *settings) as run:
        summary = _summary(run, tmp_path)
    assert summary["policy_version"] >= 2
    accounts = summary["accounting"]
    assert accounts["samples_submitted"]["accepted"] >= 1500
    assert accounts["samples_received"]["stored"] > 0
    assert imbalances(summary) == []
    assert load_policy(tmp_path / "run").spec.num_actions == 9
