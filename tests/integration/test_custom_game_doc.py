"""The example of docs/custom_game.md runs as it is printed there."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import torch

from simul.common.nets.io import load_policy
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json
from simul.common.runtime.installation import ROOT


@pytest.mark.slow  # .ci/long runs it
def test_a_game_and_a_network_of_ones_own_are_learned_and_loaded(tmp_path):
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "custom_game.md").read_text(), re.DOTALL)
    (text,) = [block for block in blocks if "GruNetwork" in block]
    (tmp_path / "my.yaml").write_text(text)
    run = tmp_path / "run"
    command = [
        sys.executable, "-m", "simul.launch.cli", "up", str(tmp_path / "my.yaml"), "--run-dir", str(run), "--plain",
        "--stop-after-decisions", "8000", "--set", "workers.envs=16",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = read_json(RunDir(run), "summary.json")
    assert summary["policy_version"] >= 1
    assert summary["mean_batch"] > 1  # several rows a batch: sliced heads are not contiguous then
    policy = load_policy(run)
    logits, value, state = policy(torch.ones(3, 1), torch.ones(3, 2, dtype=torch.bool), policy.initial_state(3))
    assert (logits.shape, value.shape, state.shape) == ((3, 2), (3,), (3, 64))
