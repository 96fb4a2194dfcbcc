"""What `simul init` writes trains as it is, until it plays better than at random."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json
from simul.common.runtime.installation import import_path
from simul.launch.monitoring.accounting import imbalances

MUST_BE_ABOVE = 0.3  # mean return of the last 100 games of each worker; random play has 0.0 with a spread of 0.1
MOST_DECISIONS = 200_000


def _simul(folder: Path, *arguments: str) -> str:
    line = [sys.executable, "-m", "simul.launch.cli", *arguments]
    env = {**os.environ, "PYTHONPATH": import_path()}
    done = subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("network", ["mlp_lstm", "first_game.network:Network"])
def test_the_game_of_init_is_learned(tmp_path: Path, network: str) -> None:
    command = _next_command(_simul(tmp_path, "init", "first_game"))
    decisions, recent = 0, 0.0
    while recent <= MUST_BE_ABOVE and decisions < MOST_DECISIONS:  # the same command resumes
        _simul(tmp_path, *command, "--plain", "--stop-after-decisions", "45000", "--set", f"network.name={network}")
        summary = read_json(RunDir(tmp_path / "runs" / "first_game"), "summary.json")
        assert imbalances(summary) == []
        decisions, recent = summary["lifetime_decisions_learned"], summary["returns"]["recent_mean"]
    assert recent > MUST_BE_ABOVE, f"{recent} after {decisions} decisions"


def _next_command(said: str) -> list[str]:
    """The arguments of `simul` that `simul init` names last."""
    return said.splitlines()[-1].removeprefix("Next: simul ").split()
