"""Nim against a player that moves at random: most actions are illegal at most steps."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

HEAPS = 4
LARGEST = 7


class Nim(gymnasium.Env):
    """Take any number of objects from one heap; who takes the last one wins: reward 1, else -1.

    Observation, float32 [4]: objects in each heap / 7. Action heap * 7 + (number - 1). The mask, True = legal, is in
    `info["action_mask"]` and `action_masks()`. Heaps are drawn until the first player can force a win.
    """

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (HEAPS,), np.float32)
        self.action_space = spaces.Discrete(HEAPS * LARGEST)
        self._heaps = np.ones(HEAPS, np.int64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Draw the heaps."""
        super().reset(seed=seed)
        self._heaps = self.np_random.integers(1, LARGEST + 1, HEAPS)
        while not np.bitwise_xor.reduce(self._heaps):  # Bouton 1901: lost against perfect play
            self._heaps = self.np_random.integers(1, LARGEST + 1, HEAPS)
        return self._seen()

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """The action, then the opponent's, unless the game is over."""
        self._take(int(action))
        reward = 1.0
        if self._heaps.any():
            self._take(int(self.np_random.choice(np.flatnonzero(self.action_masks()))))
            reward = 0.0 if self._heaps.any() else -1.0
        observation, info = self._seen()
        return observation, reward, not self._heaps.any(), False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """bool [28], True = legal."""
        return (np.arange(1, LARGEST + 1) <= self._heaps[:, None]).reshape(-1)

    def _take(self, action: int) -> None:
        heap, number = divmod(action, LARGEST)
        if number + 1 > self._heaps[heap]:
            raise ValueError(f"action {action} takes {number + 1} of {self._heaps[heap]} objects")
        self._heaps[heap] -= number + 1

    def _seen(self) -> tuple[NDArray[np.float32], dict[str, Any]]:
        mask = self.action_masks()
        return (self._heaps / LARGEST).astype(np.float32), {"action_mask": mask if mask.any() else np.ones_like(mask)}
