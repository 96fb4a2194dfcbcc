"""Nim: take stones from one of three piles; who takes the last stone wins. The opponent plays at random.

Replace it by a game of your own: any class with the interface of a Gymnasium env, `Discrete` actions and, where not
every action is always legal, `info["action_mask"]`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

PILES = 3
Result = tuple[np.ndarray, dict[str, Any]]


class Nim(gymnasium.Env):
    """Observation: the size of each pile, one-hot. Action `size * pile + n`: take `n + 1` stones from `pile`."""

    def __init__(self, size: int = 5) -> None:
        self.size = size  # stones of a pile at most; set by `game_options` in the YAML file
        self.observation_space = spaces.Box(0.0, 1.0, (PILES * (size + 1),), np.float32)
        self.action_space = spaces.Discrete(PILES * size)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Result:
        """Random piles. The opponent begins half of the games."""
        super().reset(seed=seed)  # makes self.np_random
        self.piles = self.np_random.integers(1, self.size + 1, PILES)
        if self.np_random.random() < 0.5:
            self._take(self._random_action())
        return self._observe()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Our move and the opponent's answer. Reward: 1 for a game that is won, -1 for one that is lost."""
        self._take(action)
        reward = 1.0 if not self.piles.any() else 0.0
        if not reward:
            self._take(self._random_action())
            reward = -1.0 if not self.piles.any() else 0.0
        observation, info = self._observe()
        return observation, reward, reward != 0.0, False, info

    def _take(self, action: int) -> None:
        pile, n = divmod(int(action), self.size)
        self.piles[pile] -= n + 1

    def _random_action(self) -> int:
        return int(self.np_random.choice(np.flatnonzero(self._mask())))

    def _mask(self) -> np.ndarray:
        """uint8, 1 = legal: at most as many stones as the pile has."""
        return (np.arange(1, self.size + 1) <= self.piles[:, None]).astype(np.uint8).reshape(-1)

    def _observe(self) -> Result:
        observation = np.eye(self.size + 1, dtype=np.float32)[self.piles].reshape(-1)
        return observation, {"action_mask": self._mask()}
