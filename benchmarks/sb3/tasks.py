"""The tasks of `make bench-sb3`: an environment, the same number of steps for both, and the settings of each. Pure.

Settings of the peers are those of RL Baselines3 Zoo (hyperparams/ppo.yml and ppo_lstm.yml) where it has the
environment; LunarLander-v3 has those of v2. It has none for the masked and the memory task: MaskablePPO's are those of
CartPole with an entropy bonus, RecurrentPPO's those of CartPoleNoVel with whole episodes in an unroll and an LSTM of 64
units, as ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Algorithm = Literal["PPO", "MaskablePPO", "RecurrentPPO"]


@dataclass(frozen=True)
class Task:
    """One comparison.

    Attributes:
        env: a registered id, or module:Class.
        steps: of the environment, for each side.
        config, overrides: ours.
        algorithm, settings, envs, normalize: the peer's class, its keyword arguments (`lin_X`: from X to 0 over the
            run), number of environments, and whether observations and rewards are normalised.
        processes: the peer steps every environment in a process of its own.
        speed: of a task for speed alone: our steps a second must be at least so many times the peer's.
    """

    name: str
    env: str
    steps: int
    config: str
    algorithm: Algorithm
    settings: Mapping[str, Any]
    envs: int
    normalize: bool = False
    overrides: tuple[str, ...] = field(default=())
    processes: bool = False
    speed: float | None = None


_CARTPOLE: dict[str, Any] = {
    "n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "n_epochs": 20, "ent_coef": 0.0,
    "learning_rate": "lin_0.001", "clip_range": "lin_0.2",
}  # fmt: skip

TASKS: tuple[Task, ...] = (
    Task("CartPole-v1", "CartPole-v1", 100_000, "cartpole", "PPO", _CARTPOLE, 8),
    Task(
        "Acrobot-v1", "Acrobot-v1", 500_000, "gymnasium", "PPO",
        {"n_steps": 256, "gae_lambda": 0.94, "gamma": 0.99, "n_epochs": 4, "ent_coef": 0.0}, 16, normalize=True,
    ),
    Task(
        "LunarLander-v3", "LunarLander-v3", 1_000_000, "gymnasium", "PPO",
        {"n_steps": 1024, "batch_size": 64, "gae_lambda": 0.98, "gamma": 0.999, "n_epochs": 4, "ent_coef": 0.01}, 16,
        overrides=(
            "learner.discount=0.999", "learner.gae_lambda=0.98", "learner.entropy_coefficient=0.01",
            "learner.final_learning_rate=1e-4", "learner.batch_steps=8192", "learner.minibatches=32",
            # V-trace truncates ratios at 1: over traces of about 50 steps (lambda 0.98) that biases the targets.
            "learner.c_clip=2", "learner.rho_clip=2",
        ),
    ),
    Task(
        "masked", "benchmarks.sb3.nim:Nim", 200_000, "gymnasium", "MaskablePPO", {**_CARTPOLE, "ent_coef": 0.01}, 8,
        overrides=(
            "gymnasium.reward_scale=1.0", "network.options={hidden: 256, layers: 2, memory: false}",
            "learner.batch_steps=1024", "learner.minibatches=4", "learner.epochs=10", "learner.discount=0.99",
            "learner.gae_lambda=0.98", "learner.entropy_coefficient=0.01", "learner.final_learning_rate=1e-4",
        ),
    ),
    Task(
        "memory", "simul.env_worker.games.gymnasium.memory:MemoryEnv", 200_000, "memory", "RecurrentPPO",
        {**_CARTPOLE, "n_steps": 22, "gae_lambda": 1.0, "gamma": 0.99, "ent_coef": 0.02,
         "policy_kwargs": {"lstm_hidden_size": 64}}, 64,
    ),
)  # fmt: skip


_TOY: dict[str, Any] = {"n_steps": 128, "batch_size": 512, "n_epochs": 4}


def _toy(name: str, algorithm: Algorithm, speed: float, network: str, envs: int, *, processes: bool) -> Task:
    how = f"{envs} {'processes' if processes else 'envs'}"
    return Task(
        f"{name}, {how}", "benchmarks.sb3.toy:Toy", 20_000, "cartpole", algorithm, _TOY, envs,
        overrides=(f"network.options={network}", "workers.count=2", "workers.envs=32"), processes=processes,
        speed=speed,
    )  # fmt: skip


# Networks as wide as the peer's: MlpPolicy has two layers of 64, MlpLstmPolicy an LSTM of 256.
_SPEEDS: tuple[tuple[str, Algorithm, float, str], ...] = (
    ("toy", "MaskablePPO", 2.5, "{hidden: 64, layers: 2, memory: false}"),
    ("toy with LSTM", "RecurrentPPO", 10.0, "{hidden: 256}"),
)
# Every way to vectorise the peer; the promise is against its best.
SPEED_TASKS: tuple[Task, ...] = tuple(
    _toy(name, algorithm, speed, network, envs, processes=processes)
    for name, algorithm, speed, network in _SPEEDS
    for envs, processes in ((8, False), (32, False), (2, True), (8, True))
)


def task_called(name: str) -> Task:
    """Raises KeyError for an unknown name."""
    return {task.name: task for task in (*TASKS, *SPEED_TASKS)}[name]
