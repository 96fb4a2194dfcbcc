"""MaskablePPO of sb3-contrib on Pokémon, as poke-env's documentation builds it. Prints JSON.

    python -m benchmarks.sb3.pokemon_peer --url ws://127.0.0.1:PORT/showdown/websocket --envs 4 --seconds 60

Each environment is poke-env's single-agent one over a real Showdown server, in a process of its own, against
RandomPlayer; the observation is the dozen numbers of examples/pokemon_embedding.py, the reward poke-env's own helper.
Prints {"steps", "seconds", "battles", "won", "reached_sec"}: `won` is the share of the last RECENT battles, while it
trains; `reached_sec` is null unless that came to --until.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import deque
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from poke_env import AccountConfiguration, ServerConfiguration
from poke_env.battle import AbstractBattle
from poke_env.environment import SingleAgentWrapper, SinglesEnv
from poke_env.player import RandomPlayer
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import SubprocVecEnv

from examples.pokemon_embedding import Dozen

RECENT = 200  # battles
STEPS = 2048  # of all environments together, for an update; 10 epochs of minibatches of 64, as by default
FORMAT = "gen9randombattle"


class DozenEnv(SinglesEnv):
    """The environment that a user writes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        box = gymnasium.spaces.Box(-1.0, 10.0, (Dozen.size,), np.float32)
        self.observation_spaces = {agent: box for agent in self.possible_agents}

    def embed_battle(self, battle: AbstractBattle) -> NDArray[np.float32]:
        """float32 [12]."""
        return np.array(Dozen().embed_battle(battle), np.float32)

    def calc_reward(self, battle: AbstractBattle) -> float:
        """poke-env's helper, with its usual weights in units of a victory."""
        return self.reward_computing_helper(battle, fainted_value=0.1, hp_value=0.05, victory_value=1.0)


class Masked(gymnasium.Wrapper[Any, Any, Any, Any]):
    """What MaskablePPO reads: the observation alone, and the mask by a method."""

    def __init__(self, env: SingleAgentWrapper[Any]) -> None:
        super().__init__(env)
        self.observation_space = env.observation_space["observation"]
        self._mask: NDArray[np.bool_] = np.ones(0, np.bool_)

    def action_masks(self) -> NDArray[np.bool_]:
        """Of the open decision."""
        return self._mask

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """As gymnasium."""
        seen, info = self.env.reset(**options)
        self._mask = seen["action_mask"].astype(np.bool_)
        return seen["observation"], info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """As gymnasium; at the end the info says who won."""
        seen, reward, terminated, truncated, info = self.env.step(np.int64(action))
        self._mask = seen["action_mask"].astype(np.bool_)
        if terminated or truncated:
            info = {**info, "won": bool(self.env.unwrapped.env.battle1.won)}
        return seen["observation"], float(reward), terminated, truncated, info


class Watch(BaseCallback):
    """Stops when the time is over, or the recent battles are won."""

    def __init__(self, seconds: float, until: float) -> None:
        super().__init__()
        self.recent: deque[bool] = deque(maxlen=RECENT)
        self.battles = 0
        self.reached_sec: float | None = None
        self._seconds, self._until = seconds, until
        self._began = time.monotonic()

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "won" in info:
                self.battles += 1
                self.recent.append(info["won"])
        passed = time.monotonic() - self._began
        if len(self.recent) == RECENT and sum(self.recent) >= self._until * RECENT:
            self.reached_sec = passed
            return False
        return passed < self._seconds


def make_env(url: str, name: str) -> Masked:
    """One environment; its two players log in as NAME-a and NAME-b."""
    torch.set_num_threads(1)
    server = ServerConfiguration(url, "")
    accounts = [AccountConfiguration(f"{name}{seat}", None) for seat in "ab"]
    env = DozenEnv(
        battle_format=FORMAT, server_configuration=server, account_configuration1=accounts[0],
        account_configuration2=accounts[1], log_level=40, strict=False,
    )  # fmt: skip
    return Masked(SingleAgentWrapper(env, RandomPlayer(battle_format=FORMAT, start_listening=False)))


def main() -> int:
    """Exit code 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--envs", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="of training, at most")
    parser.add_argument("--until", type=float, default=2.0, help="share of the recent battles; default: never")
    options = parser.parse_args()
    makers = [partial(make_env, options.url, f"p{os.getpid()}n{number}") for number in range(options.envs)]
    envs = SubprocVecEnv(makers, start_method="spawn")
    model = MaskablePPO("MlpPolicy", envs, n_steps=STEPS // options.envs, device="cpu", seed=1)
    watch, began = Watch(options.seconds, options.until), time.monotonic()
    model.learn(10**9, callback=watch)
    found = {
        "steps": int(model.num_timesteps), "seconds": time.monotonic() - began, "battles": watch.battles,
        "won": sum(watch.recent) / max(len(watch.recent), 1), "reached_sec": watch.reached_sec,
    }  # fmt: skip
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    os._exit(0)  # poke-env's threads do not end by themselves


if __name__ == "__main__":
    sys.exit(main())
