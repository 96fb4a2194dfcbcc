"""A game of your own: any class that looks like a Gymnasium env with discrete actions.

Name it in a YAML file (run from the directory that holds the module):

    game: examples.custom_env:Corridor     # module:Class
    game_options: {length: 8}              # its keyword arguments

`simul up my.yaml` checks it against its declared spaces, then trains on it.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray


class Corridor(gymnasium.Env):
    """Walk to the right end; a wall on the left makes one action illegal there."""

    def __init__(self, length: int = 8) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Discrete(2)  # 0 left, 1 right
        self.length, self.place = length, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start at the wall."""
        super().reset(seed=seed)
        self.place = 0
        return self.look()

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """One step costs 0.01, arriving earns 1."""
        self.place += 1 if action == 1 else -1
        arrived = self.place == self.length
        observation, info = self.look()
        return observation, 1.0 if arrived else -0.01, arrived, False, info

    def look(self) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Where we are, and which actions are legal (leave `action_mask` out if all are)."""
        return np.array([self.place / self.length], np.float32), {"action_mask": [self.place > 0, True]}
