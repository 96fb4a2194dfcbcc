"""Replays of Gymnasium episodes: a JSON file of the steps, and a video where the env draws pictures."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import orjson
from gymnasium.error import DependencyNotInstalled
from gymnasium.wrappers import RecordVideo
from numpy.typing import NDArray

from simul.common.errors import ConfigError
from simul.common.runtime.extras import install_extra

LONGEST_OBSERVATION = 64  # a longer one (an image) is left out of the JSON
DIGITS = 6  # of an observed number
WITHOUT = "Write only the JSON of the steps with --replay-player none"

EnvMaker = Callable[[], gymnasium.Env]


def drawing_env(make: Callable[..., gymnasium.Env], name: str) -> EnvMaker | None:
    """Builder of the env with `render_mode="rgb_array"`, tried out; None where it has no such mode.

    Raises:
        ConfigError: a package is missing, of video files or of the env's pictures.
    """
    env = make()
    modes = (getattr(env, "metadata", None) or {}).get("render_modes", ())
    if hasattr(env, "close"):
        env.close()
    if "rgb_array" not in modes or not isinstance(env, gymnasium.Env):
        return None
    if importlib.util.find_spec("moviepy") is None:
        raise ConfigError(
            f"Videos of {name} need moviepy, which is not installed. {WITHOUT}, or run: {install_extra('video')}"
        )
    try:
        env = make(render_mode="rgb_array")
    except TypeError as error:
        raise ConfigError(
            f"{name} names rgb_array in its metadata and refuses render_mode: {error}. {WITHOUT}."
        ) from None
    try:
        env.reset(seed=0)
        env.render()
    except DependencyNotInstalled as error:
        raise ConfigError(
            f"{name} cannot draw its pictures: {error}. {WITHOUT}, or run: {install_extra('video')}"
        ) from None
    finally:
        env.close()
    return lambda: make(render_mode="rgb_array")


class EpisodeRecorder:
    """Writes the episodes of one env: WORKER-ENV-episode-NUMBER.json and, of an env that draws, .mp4.

    Args:
        folder: exists.
        name: of the game.
        worker, env: their indexes.
    """

    def __init__(self, folder: Path, name: str, worker: int, env: int) -> None:
        self._folder = folder
        self._about = {"game": name, "worker": worker, "env": env}
        self._stem = f"{worker}-{env}"
        self._video: RecordVideo | None = None
        self._episode: dict[str, Any] | None = None

    def wrap(self, env: gymnasium.Env) -> gymnasium.Env:
        """The env, recorded where it draws pictures."""
        self._video = None
        if getattr(env, "render_mode", None) != "rgb_array":
            return env
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*Overwriting existing videos")  # the folder is shared by all envs
            self._video = RecordVideo(env, str(self._folder), lambda episode: True, name_prefix=self._stem)
        return self._video

    def begin(self, episode: int, seed: int) -> None:
        """A reset follows."""
        if self._video is not None:
            self._video.episode_id = episode - 1  # counts resets; a new env begins anew
        self._episode = {**self._about, "episode": episode, "seed": seed, "steps": []}

    def observe(self, observation: NDArray[Any] | None, mask: NDArray[np.uint8] | None) -> None:
        """What the next decision, or the end, is made from. `mask`: 1 = legal; None after the last step."""
        if self._episode is None:
            return
        step: dict[str, Any] = {}
        if observation is not None and observation.size <= LONGEST_OBSERVATION:
            step["observation"] = [float(f"{value:.{DIGITS}g}") for value in observation.reshape(-1)]
        elif observation is not None:
            self._episode["observation_size"] = observation.size
        if mask is not None:
            step["legal_actions"] = int(mask.sum())
        self._episode["steps"].append(step)

    def act(self, action: int, reward: float) -> None:
        """The action chosen for the last observation, and its reward, unscaled."""
        if self._episode is not None:
            self._episode["steps"][-1] |= {"action": action, "reward": reward}

    def end(self, outcome: str, episode_return: float) -> None:
        """Write the files. `outcome`: terminated, truncated, or why the episode was aborted.

        Raises ConfigError where they cannot be written.
        """
        episode, self._episode = self._episode, None
        if episode is None:
            return
        played = sum("action" in step for step in episode["steps"])
        episode = {**episode, "outcome": outcome, "return": episode_return, "length": played}
        stem = f"{self._stem}-episode-{episode['episode']}"
        try:
            if self._video is not None and self._video.recording:
                self._video.stop_recording()
            (self._folder / f"{stem}.json").write_bytes(orjson.dumps(episode))
        except OSError as error:
            raise ConfigError(f"The replay {self._folder / stem} cannot be written: {error.strerror}.") from None
