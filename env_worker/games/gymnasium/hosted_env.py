"""One Gymnasium env inside a source: built when needed, checked at every step, discarded when it fails."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.checks import check_reward
from simul.env_worker.games.gymnasium.consecutive_choices import ConsecutiveChoices
from simul.env_worker.games.gymnasium.declared_columns import DeclaredColumns
from simul.env_worker.games.gymnasium.replays import EpisodeRecorder
from simul.env_worker.games.gymnasium.spaces import action_mask, close_env, flat_observation


def episode_seed(seed: int, env: int, episode: int) -> int:
    """31-bit seed of an episode, independent of time and order."""
    digest = hashlib.blake2b(f"{seed}/{env}/{episode}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 33


class HostedEnv:
    """An env and the state of its episode. Exceptions of the user's env pass through.

    Attributes:
        episode, step: of the decision that waits for its action.
        alive: an episode is running.
        mask: uint8 [A] of that decision, 1 = legal.
        reward: of the last step, unscaled. episode_return: their sum.
        finished: number of finished episodes.
        encode_sec: seconds spent on observations.
    """

    def __init__(
        self, index: int, make_env: Callable[[], gymnasium.Env], spec: GameSpec,
        recorder: EpisodeRecorder | None = None, reward_scale: float = 1.0,
    ) -> None:  # fmt: skip
        self.index = index
        self.episode = -1
        self.step = 0
        self.alive = False
        self.mask: NDArray[np.uint8] = np.zeros(spec.num_actions, np.uint8)
        self.reward = 0.0
        self.episode_return = 0.0
        self.finished = 0
        self.encode_sec = 0.0
        self._dtype = spec.observation_dtype
        self._name = spec.name
        self._reward_scale = reward_scale
        self._make_env = make_env
        self._recorder = recorder
        self._env: gymnasium.Env | None = None
        self._components = 1

    def begin(self) -> None:
        """Advance to the next episode's number; `reset` follows and may fail."""
        self.episode += 1
        self.step = 0
        self.reward = self.episode_return = 0.0
        self.alive = True

    def reset(self, seed: int) -> NDArray[Any]:
        """First observation, wire dtype [D], of the episode; builds the env if there is none."""
        if self._env is None:
            env = self._make_env()
            choices = env.env if isinstance(env, DeclaredColumns) else env
            self._components = len(choices.options) if isinstance(choices, ConsecutiveChoices) else 1
            self._env = env if self._recorder is None else self._recorder.wrap(env)
        own_seed = episode_seed(seed, self.index, self.episode)
        if self._recorder is not None:
            self._recorder.begin(self.episode, own_seed)
        observation, info = self._env.reset(seed=own_seed)
        self.mask = action_mask(info, len(self.mask), self._name)
        flat = flat_observation(self._env.observation_space, observation, self._dtype)
        if self._recorder is not None:
            self._recorder.observe(flat, self.mask)
        return flat

    def advance(self, action: int) -> tuple[NDArray[Any] | None, bool, bool]:
        """Step the env: observation, wire dtype [D] (None where it terminated), terminated, truncated."""
        assert self._env is not None, "advance before reset"
        self.step += 1
        observation, reward, terminated, truncated, info = self._env.step(int(self._env.action_space.start) + action)
        self.reward = float(reward)
        check_reward(self.reward, self._name, 0, self._reward_scale)
        self.episode_return += self.reward
        if self._recorder is not None:
            self._recorder.act(action, self.reward)
        if terminated:
            return None, True, False
        if not truncated:
            self.mask = action_mask(info, len(self.mask), self._name)
        begin = time.perf_counter()
        flat = flat_observation(self._env.observation_space, observation, self._dtype)
        self.encode_sec += time.perf_counter() - begin
        if self._recorder is not None:
            self._recorder.observe(flat, None if truncated else self.mask)
        return flat, False, bool(truncated)

    @property
    def env_steps(self) -> int:
        """Steps of the env in this episode: fewer than decisions where an action has several components."""
        return self.step // self._components

    def end_replay(self, outcome: str) -> None:
        """The episode is over: write its replay, where one is kept. Raises ConfigError."""
        if self._recorder is not None:
            self._recorder.end(outcome, self.episode_return)

    def discard(self) -> str:
        """Close the env; the next `reset` builds another. Returns what closing raised as a sentence, or ""."""
        env, self._env = self._env, None
        return close_env(env)
