"""MaskablePPO on OFC for a while: `python -m benchmarks.ofc.peer SETTING --seconds S` prints a line of JSON.

{"per_sec": steps learned from a second, "cpu_us": processor time of a step, of this process and its envs}, of whole
cycles of a rollout and its updates.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from functools import partial
from typing import Any

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import SubprocVecEnv
from torch import Tensor, nn

from benchmarks.harness.cores import family_seconds
from benchmarks.ofc.one_seat import OPPONENTS, make_ofc
from benchmarks.ofc.settings import ENVS, PEERS, THREADS, WIDTH
from simul.common.config.loader import load_config

UNTIMED_CYCLES = 1


class Trunk(BaseFeaturesExtractor):
    """Two layers that policy and value share, as in our network."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, WIDTH)
        self.layers = nn.Sequential(
            nn.Linear(observation_space.shape[0], WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()
        )

    def forward(self, observation: Tensor) -> Tensor:
        """float32 [B, D] -> [B, WIDTH]."""
        features: Tensor = self.layers(observation)
        return features


class Cycles(BaseCallback):
    """Notes when each rollout begins, which is when the updates of the one before have ended."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.begun: list[tuple[float, float, int]] = []  # time, processor time and steps so far
        self._seconds = seconds

    def _on_rollout_start(self) -> None:
        self.begun.append((time.perf_counter(), family_seconds([os.getpid()]), self.model.num_timesteps))

    def _on_step(self) -> bool:
        """False, which ends the training, when whole cycles have taken the time that was asked for."""
        return self.window is None

    @property
    def window(self) -> tuple[float, float, int] | None:
        """Seconds, processor time and steps of the timed cycles, None while they are too short."""
        if len(self.begun) < UNTIMED_CYCLES + 2:
            return None
        first, last = self.begun[UNTIMED_CYCLES], self.begun[-1]
        seconds, cpu, steps = (after - before for before, after in zip(first, last))
        return (seconds, cpu, int(steps)) if seconds >= self._seconds else None


def main() -> int:
    """Exit code 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("setting", choices=PEERS)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--opponent", choices=OPPONENTS, default="random")
    options = parser.parse_args()
    if options.setting in THREADS:
        torch.set_num_threads(THREADS[options.setting])
    sys.stdout.write(json.dumps(learn(options.setting, options.seconds, options.seed, options.opponent)) + "\n")
    return 0


def learn(setting: str, seconds: float, seed: int, opponent: str) -> dict[str, float]:
    """Train for at least so many seconds, and measure."""
    envs = SubprocVecEnv([partial(make_ofc, opponent)] * ENVS)
    try:
        model = MaskablePPO("MlpPolicy", envs, seed=seed, device="cpu", **arguments(setting))
        cycles = Cycles(seconds)
        model.learn(sys.maxsize, callback=cycles)
    finally:
        envs.close()
    assert cycles.window is not None
    spent, cpu, steps = cycles.window
    return {"per_sec": steps / spent, "cpu_us": cpu * 1e6 / steps}


def arguments(setting: str) -> dict[str, Any]:
    """Keyword arguments of MaskablePPO."""
    if setting == "sb3":
        return {"policy_kwargs": {"net_arch": [WIDTH, WIDTH]}}
    learner = load_config("ofc").learner
    return {
        "n_steps": learner.batch_steps // ENVS,
        "batch_size": learner.batch_steps // learner.minibatches,
        "n_epochs": learner.epochs,
        "learning_rate": learner.learning_rate,
        "gamma": learner.discount,
        "gae_lambda": learner.gae_lambda,
        "ent_coef": learner.entropy_coefficient,
        "policy_kwargs": {"features_extractor_class": Trunk, "net_arch": []},
    }


if __name__ == "__main__":
    sys.exit(main())
