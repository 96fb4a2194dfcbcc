"""Small tasks with known answers, for `learn_check`: one for each kind of space, and one for burn-in."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from simul.env_worker.games.gymnasium.memory import MemoryEnv

MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))


class SeekEnv(gymnasium.Env):
    """Walk to a goal on a grid: reward 1 there, and the episode ends; it is cut short after 3 `size` steps.

    Observation, uint8 [size, size, 2]: 255 where the walker is, and where the goal is.
    """

    def __init__(self, size: int = 6) -> None:
        self.observation_space = spaces.Box(0, 255, (size, size, 2), np.uint8)
        self.action_space = spaces.Discrete(len(MOVES))
        self._size = size
        self._places = np.zeros((2, 2), np.int64)  # walker and goal
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Draw two places."""
        super().reset(seed=seed)
        drawn = self.np_random.choice(self._size**2, 2, replace=False)
        self._places = np.stack(np.unravel_index(drawn, (self._size, self._size)), axis=1)
        self._steps = 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Walls stop the walker."""
        self._steps += 1
        self._places[0] = np.clip(self._places[0] + MOVES[action], 0, self._size - 1)
        there = bool((self._places[0] == self._places[1]).all())
        return self._observe(), float(there), there, self._steps == 3 * self._size, {}

    def _observe(self) -> NDArray[np.uint8]:
        image = np.zeros(self.observation_space.shape, np.uint8)
        for channel, (row, column) in enumerate(self._places):
            image[row, column, channel] = 255
        return image


class ChordEnv(gymnasium.Env):
    """Choose three tones that fit, 4 times an episode; a perfect return is 4, one by chance 1.2.

    The observation draws a key of 4. The mask leaves one first tone. The second must follow the first (mod 3), which
    earns 0.5, the third must be the key plus the second (mod 4), which earns 0.5: both depend on earlier choices.
    """

    TONES = 3, 3, 4

    def __init__(self) -> None:
        self.observation_space = spaces.Discrete(4)
        self.action_space = spaces.MultiDiscrete(self.TONES)
        self._key = self._first = self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Draw a key and a first tone."""
        super().reset(seed=seed)
        self._steps = 0
        return self._draw()

    def step(self, action: NDArray[np.int64]) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Judge the chord and draw again."""
        first, second, third = (int(tone) for tone in action)
        assert first == self._first
        reward = 0.5 * (second == (first + 1) % 3) + 0.5 * (third == (self._key + second) % 4)
        self._steps += 1
        observation, info = self._draw()
        return observation, reward, self._steps == 4, False, info

    def _draw(self) -> tuple[int, dict[str, Any]]:
        self._key, self._first = int(self.np_random.integers(4)), int(self.np_random.integers(3))
        mask = np.ones(sum(self.TONES), np.int8)
        mask[:3] = np.arange(3) == self._first
        return self._key, {"action_mask": mask}


class StrongestEnv(gymnasium.Env):
    """Name the kind of the strongest unit, 5 times an episode: 0.2 if right. By chance 0.25 to 0.4 of a return of 1.

    Observation: 3 to MOST units in random order, each of a kind of 4 and with a strength from 0 to 1.
    """

    MOST = 12
    KINDS = 4

    def __init__(self) -> None:
        unit = spaces.Dict(kind=spaces.Discrete(self.KINDS), strength=spaces.Box(0.0, 1.0, (1,), np.float32))
        self.observation_space = spaces.Sequence(unit)
        self.action_space = spaces.Discrete(self.KINDS)
        self._answer = self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Draw units."""
        super().reset(seed=seed)
        self._steps = 0
        return self._draw(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Judge the answer and draw again."""
        self._steps += 1
        reward = 0.2 * (int(action) == self._answer)
        return self._draw(), reward, self._steps == 5, False, {}

    def _draw(self) -> tuple[dict[str, Any], ...]:
        count = int(self.np_random.integers(3, self.MOST + 1))
        kinds, strengths = (
            self.np_random.integers(self.KINDS, size=count),
            self.np_random.random((count, 1), np.float32),
        )
        self._answer = int(kinds[strengths.argmax()])
        return tuple({"kind": kind, "strength": strength} for kind, strength in zip(kinds, strengths))


class CodeBookEnv(gymnasium.Env):
    """One of 50 words is shown, 10 times; each has one right answer of 5, in no order: 0.1 if right.

    By chance the return is 0.2.
    """

    WORDS = 50
    ANSWERS = 5

    def __init__(self) -> None:
        self.observation_space = spaces.Discrete(self.WORDS)
        self.action_space = spaces.Discrete(self.ANSWERS)
        self._answers = np.random.default_rng(50).permutation(np.arange(self.WORDS) % self.ANSWERS)
        self._word = self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Draw a word."""
        super().reset(seed=seed)
        self._steps = 0
        return self._draw(), {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Judge the answer and draw again."""
        self._steps += 1
        reward = 0.1 * (int(action) == self._answers[self._word])
        return self._draw(), reward, self._steps == 10, False, {}

    def _draw(self) -> int:
        self._word = int(self.np_random.integers(self.WORDS))
        return self._word


class RecallEnv(MemoryEnv):
    """The memory task 16 times an episode, with 6 blank steps each: 128 steps, 1/16 for each right answer.

    Unrolls shorter than an episode begin inside a round, with the state that the server had. By chance the return is
    0.25.
    """

    ROUNDS = 16

    def __init__(self) -> None:
        super().__init__(blank_steps=6)
        self._rounds = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """As `MemoryEnv`'s."""
        self._rounds = 0
        return super().reset(seed=seed, options=options)

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """The answer to a query begins the next round; the last one ends the episode."""
        observation, reward, asked, truncated, info = super().step(action)
        if asked:
            self._rounds += 1
            observation, info = super().reset()
        return observation, reward / self.ROUNDS, self._rounds == self.ROUNDS, truncated, info
