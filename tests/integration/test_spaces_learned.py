"""Images and actions of several components through all processes: what arrives in the checkpoint and in the books."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from simul.common.nets.io import Policy, load_policy
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json
from simul.common.runtime.installation import ROOT

SMALL = (
    "gymnasium.reward_scale=1", "learner.batch_steps=512", "learner.minibatches=2", "learner.epochs=1",
    "learner.unroll_length=8", "workers.envs=16",
)  # fmt: skip


def learned(run: Path, *settings: str, decisions: int = 1500) -> tuple[dict[str, Any], Policy]:
    """Summary and policy of a short run."""
    chosen = [part for setting in (*SMALL, *settings) for part in ("--set", setting)]
    command = [
        sys.executable, "-m", "simul.launch.cli", "up", "cartpole", "--run-dir", str(run), "--plain",
        "--stop-after-decisions", str(decisions), *chosen,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return read_json(RunDir(run), "summary.json"), load_policy(run)


@pytest.mark.slow  # images of bytes: unit tests of the source, the codec, the row checks, the engine and conv_lstm
@pytest.mark.parametrize("shared_memory", ["true", "false"])
def test_images_arrive_as_bytes(tmp_path, shared_memory):
    summary, policy = learned(
        tmp_path / "run", "gymnasium.id=benchmarks.learn_envs:SeekEnv", "gymnasium.frame_stack=2",
        "network.name=conv_lstm", "network.options={channels: [4], blocks: 1, hidden: 8}",
        f"server.shared_memory={shared_memory}",
    )  # fmt: skip
    assert summary["policy_version"] >= 1
    assert (policy.spec.observation_dtype, policy.spec.observation_shape) == ("uint8", (2, 6, 6, 2))
    assert policy.spec.observation_axes == "NHWC"
    image = torch.randint(0, 256, (3, 144), dtype=torch.uint8)
    logits, _, _ = policy(image, torch.ones(3, 4, dtype=torch.bool), policy.initial_state(3))
    assert logits.isfinite().all()


@pytest.mark.slow  # two runs; unit tests: test_consecutive_choices.py, and of a resume test_normalization.py
@pytest.mark.timeout(600)
def test_statistics_and_components_survive_a_resume(tmp_path):
    settings = (
        "gymnasium.id=benchmarks.learn_envs:ChordEnv", "network.options={hidden: 8}",
        "network.normalize_observations=true", "learner.normalize_rewards=true",
    )  # fmt: skip
    summary, policy = learned(tmp_path / "run", *settings)
    assert policy.spec.observation_size == 4 + 3 + (3 + 3)  # the env's, which component, the choices so far
    assert policy.spec.num_actions == 4
    assert summary["lengths"]["decisions"] == 3 * summary["lengths"]["env_steps"] == 12 * summary["returns"]["count"]
    mean = policy.network.observation_mean
    torch.testing.assert_close(mean[4:7], torch.full((3,), 1 / 3), atol=0.02, rtol=0)
    assert not torch.equal(policy.network.observation_variance, torch.ones(13))
    _, resumed = learned(tmp_path / "run", *settings)
    assert resumed.meta.version > policy.meta.version
    torch.testing.assert_close(resumed.network.observation_mean, mean, atol=0.1, rtol=0)
