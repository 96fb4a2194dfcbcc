"""The examples for users of poke-env train by the commands that their docstrings print."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json
from simul.common.runtime.installation import ROOT
from tests.support.waiting import PATIENCE_SEC

SHORT = ["--mode", "test", "--set", "stop_after_decisions=1200", "--set", "learner.batch_steps=256"]


def command_of(example: str) -> list[str]:
    """The command in an example's docstring, for a short run."""
    text = (ROOT / "examples" / f"{example}.py").read_text()
    (command,) = re.findall(r"^    simul (up .*)", text.replace("\\\n", ""), re.MULTILINE)
    return shlex.split(command)


@pytest.mark.slow  # .ci/long runs them; test_own_code.py plays observations and rewards on the same source
@pytest.mark.parametrize("example", ["pokemon_embedding", "pokemon_doubles_embedding", "pokemon_player"])
def test_it_trains(example, tmp_path):
    run = [
        sys.executable,
        "-m",
        "simul.launch.cli",
        *command_of(example),
        "--plain",
        "--run-dir",
        str(tmp_path / "run"),
    ]
    done = subprocess.run([*run, *SHORT], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SEC)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = read_json(RunDir(tmp_path / "run"), "summary.json")
    assert summary["policy_version"] >= 1
    assert "own_code" not in summary["battles"]["aborted_by_cause"]
