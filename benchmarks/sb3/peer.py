"""One run of a peer: `python -m benchmarks.sb3.peer TASK --seed S --steps N` trains, plays greedily and prints JSON.

{"returns": [float, ...], "steps": int, "seconds": float}; `seconds` are those of training.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from typing import Any

import gymnasium
import torch
from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy as evaluate_masked
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecNormalize

from benchmarks.sb3.tasks import SPEED_TASKS, TASKS, Task, task_called

POLICIES = {"PPO": "MlpPolicy", "MaskablePPO": "MlpPolicy", "RecurrentPPO": "MlpLstmPolicy"}
CLASSES: dict[str, Any] = {"PPO": PPO, "MaskablePPO": MaskablePPO, "RecurrentPPO": RecurrentPPO}


def main() -> int:
    """Exit code 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=[task.name for task in (*TASKS, *SPEED_TASKS)])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--episodes", type=int, required=True, help="greedy, after training")
    parser.add_argument("--threads", type=int, help="of torch; default: its own choice")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    sys.stdout.write(json.dumps(run(task_called(options.task), options.seed, options.steps, options.episodes)) + "\n")
    return 0


def run(task: Task, seed: int, steps: int, episodes: int) -> dict[str, Any]:
    """Train on `steps` steps, then play `episodes` greedy episodes with seeds of their own."""
    envs = make_envs(task, task.envs, normalize=task.normalize)
    settings = {name: _value(value) for name, value in task.settings.items()}
    model = CLASSES[task.algorithm](POLICIES[task.algorithm], envs, seed=seed, device="cpu", **settings)
    began = time.perf_counter()
    model.learn(steps)
    seconds = time.perf_counter() - began
    found: dict[str, Any] = {"returns": [], "steps": int(model.num_timesteps), "seconds": seconds}
    if not episodes:
        envs.close()
        return found
    fresh = make_envs(task, task.envs, normalize=task.normalize)
    fresh.seed(1_000_000 + 1_000 * seed)  # each environment adds its number: no two runs may begin alike
    if isinstance(fresh, VecNormalize):
        fresh.obs_rms, fresh.training, fresh.norm_reward = envs.obs_rms, False, False
    evaluate = evaluate_masked if task.algorithm == "MaskablePPO" else evaluate_policy
    returns, _ = evaluate(model, fresh, n_eval_episodes=episodes, deterministic=True, return_episode_rewards=True)
    return {**found, "returns": [float(value) for value in returns]}


def make_envs(task: Task, count: int, *, normalize: bool) -> VecEnv:
    """`count` environments, stepped one after another where they are small, or each in a process of its own."""
    makers = [lambda: Monitor(make_env(task.env))] * count
    envs: VecEnv = SubprocVecEnv(makers) if task.processes else DummyVecEnv(makers)
    return VecNormalize(envs) if normalize else envs


def make_env(name: str) -> gymnasium.Env:
    """A registered env, or one of module:Class."""
    module, _, class_name = name.partition(":")
    env: gymnasium.Env = getattr(importlib.import_module(module), class_name)() if class_name else gymnasium.make(name)
    return env


def _value(value: Any) -> Any:
    """`lin_X`: X times the share of the run that is left."""
    if isinstance(value, str):
        start = float(value.removeprefix("lin_"))
        return lambda left: left * start
    return value


if __name__ == "__main__":
    sys.exit(main())
