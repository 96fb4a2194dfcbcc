"""A task that needs memory: observe a cue, wait, name it. Mean return by chance 0.25, with perfect memory 1.0."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

CUES = 4
BLANK_STEPS = 20


class MemoryEnv(gymnasium.Env):
    """Step 0 shows one of 4 cues, 20 blank steps follow, the last step asks for it: reward 1 if right, else 0.

    Observation, float32 [6]: cue (one-hot, only at step 0), blank, query. Every action is legal at every step.
    """

    def __init__(self, blank_steps: int = BLANK_STEPS) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (CUES + 2,), np.float32)
        self.action_space = spaces.Discrete(CUES)
        self._blank_steps = blank_steps
        self._cue = 0
        self._step = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Draw and show a cue."""
        super().reset(seed=seed)
        self._cue = int(self.np_random.integers(CUES))
        self._step = 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """The answer to the query earns the only reward and ends the episode."""
        asked = self._step == self._blank_steps + 1
        self._step += 1
        reward = float(asked and action == self._cue)
        return self._observe(), reward, asked, False, {}

    def _observe(self) -> NDArray[np.float32]:
        observation = np.zeros(CUES + 2, np.float32)
        if self._step == 0:
            observation[self._cue] = 1.0
        elif self._step <= self._blank_steps:
            observation[CUES] = 1.0
        elif self._step == self._blank_steps + 1:
            observation[CUES + 1] = 1.0
        return observation
