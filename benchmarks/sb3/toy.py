"""An environment whose step costs 0.5 ms of processor time: for steps a second, not for learning."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

STEP_SEC = 0.0005
OBSERVED = 2160
ACTIONS = 26
EPISODE_STEPS = 128


class Toy(gymnasium.Env):
    """Observation, float32 [2160]; 26 actions, of which the first half is legal; 128 steps, reward 0."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (OBSERVED,), np.float32)
        self.action_space = spaces.Discrete(ACTIONS)
        self._observation = np.linspace(-1.0, 1.0, OBSERVED, dtype=np.float32)
        self._mask = np.arange(ACTIONS) < ACTIONS // 2
        self._step = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """A new episode; costs nothing."""
        super().reset(seed=seed)
        self._step = 0
        return self._observation, {"action_mask": self._mask}

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Compute for 0.5 ms of this thread's processor time."""
        until = time.thread_time() + STEP_SEC
        while time.thread_time() < until:
            pass
        self._step += 1
        return self._observation, 0.0, self._step == EPISODE_STEPS, False, {"action_mask": self._mask}

    def action_masks(self) -> NDArray[np.bool_]:
        """bool [26], True = legal."""
        return self._mask
