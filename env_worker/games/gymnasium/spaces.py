"""A Gymnasium env's observations and action masks as flat rows, and its game spec."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from simul.common.errors import ConfigError, EnvError
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.error_place import describe_error
from simul.env_worker.games.base.checks import check_reward, no_legal_action
from simul.env_worker.games.base.failures import CALLERS
from simul.env_worker.games.gymnasium.consecutive_choices import (
    ConsecutiveChoices,
    component_options,
    given_mask,
    legal_actions,
)
from simul.env_worker.games.gymnasium.declared_columns import DeclaredColumns, has_ids, has_sequence
from simul.env_worker.games.gymnasium.space_checks import check_bytes, check_observation


def discrete_env(
    env: gymnasium.Env, frame_stack: int = 1, ids: str = "one_hot", max_entities: int = 0
) -> gymnasium.Env:
    """`env` with its newest `frame_stack` observations as one, and with actions of several components one by one.

    At the start of an episode the first observation stands for those before it. With `ids` = `columns`, and where there
    is a Sequence, the parts of the observation are declared, see `DeclaredColumns`. An env that lacks a space stays as
    it is: `gymnasium_spec` says why it is refused.

    Raises:
        ConfigError: an observation space whose parts cannot be declared.
    """
    components = component_options(getattr(env, "action_space", None))
    observed = getattr(env, "observation_space", None)
    if not isinstance(observed, spaces.Space):
        return env
    declared = has_sequence(observed) or (ids == "columns" and has_ids(observed))
    if frame_stack == 1 and not components and not declared:
        return env
    if frame_stack > 1 and has_sequence(observed):
        raise ConfigError("gymnasium.frame_stack: observations with a Sequence are not stacked; leave it out")
    if not isinstance(env, gymnasium.Env):
        env = _InterfaceEnv(env)
    if frame_stack > 1:
        # envs reuse their buffers, and the stack keeps what it is given
        copied = gymnasium.wrappers.TransformObservation(env, copy.deepcopy, env.observation_space)
        env = gymnasium.wrappers.FrameStackObservation(copied, frame_stack)
    if components:
        env = ConsecutiveChoices(env)
    return DeclaredColumns(env, ids == "columns", max_entities) if declared else env


class _InterfaceEnv(gymnasium.Env):
    """A gymnasium.Env, which wrappers demand, around an object with the interface alone."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self.action_space, self.observation_space = env.action_space, env.observation_space
        self.metadata = getattr(env, "metadata", gymnasium.Env.metadata)
        self.render_mode = getattr(env, "render_mode", None)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """As `gymnasium.Env.reset`; the object's needs no argument `options`."""
        given: tuple[Any, dict[str, Any]] = (
            self._env.reset(seed=seed) if options is None else self._env.reset(seed=seed, options=options)
        )
        return given

    def step(self, action: Any) -> Any:
        """As `gymnasium.Env.step`."""
        return self._env.step(action)

    def render(self) -> Any:
        """As `gymnasium.Env.render`."""
        return self._env.render()

    def close(self) -> None:
        """Close the object, where it can be closed."""
        if hasattr(self._env, "close"):
            self._env.close()


def gymnasium_spec(env: gymnasium.Env, name: str) -> GameSpec:
    """The game spec of an env with a discrete action space.

    Raises:
        ConfigError: a space is missing, or of a kind that does not flatten.
    """
    _refuse_pettingzoo(env, name)
    actions = getattr(env, "action_space", None)
    if isinstance(actions, spaces.Box):
        raise ConfigError(
            f"The environment {name} has continuous actions, {actions}; expected gymnasium.spaces.Discrete, "
            "MultiDiscrete or MultiBinary. Name a function of yours, game: module:function, that returns "
            "gymnasium.wrappers.DiscretizeAction(env, bins=5, multidiscrete=True)."
        )
    if not isinstance(actions, spaces.Discrete):
        raise ConfigError(
            f"The environment {name} has the action space {actions}; expected gymnasium.spaces.Discrete, "
            "MultiDiscrete or MultiBinary."
        )
    observations = getattr(env, "observation_space", None)
    if not isinstance(observations, spaces.Space):
        raise ConfigError(f"The environment {name} has no observation_space; expected a gymnasium.spaces.Space.")
    try:
        size = int(spaces.flatdim(observations))
    except (ValueError, NotImplementedError) as error:
        raise ConfigError(f"The observations of {name} do not flatten to numbers: {error}") from None
    if size < 1:
        raise ConfigError(f"The environment {name} has an empty observation space: {observations}.")
    image = _image_of(observations)
    declared = env if isinstance(env, DeclaredColumns) else None
    return GameSpec(
        name=name,
        observation_size=size,
        num_actions=int(actions.n),
        observation_dtype="float32" if image is None else "uint8",
        observation_shape=() if image is None else image.shape,
        observation_axes="" if image is None else _axes_of(image.shape),
        layout=() if declared is None else declared.layout,
        entities=() if declared is None else declared.entities,
    )


def _refuse_pettingzoo(env: Any, name: str) -> None:
    """Raises ConfigError for an env that asks for the spaces of an agent, as PettingZoo's AEC and parallel envs do."""
    by_agent = callable(getattr(env, "action_space", None)) and callable(getattr(env, "observation_space", None))
    if by_agent and (hasattr(env, "possible_agents") or hasattr(env, "agents")):
        kind = "parallel env" if not hasattr(env, "agent_iter") else "AEC env"
        raise ConfigError(
            f"{name} is a PettingZoo env ({kind}); Simul takes Gymnasium envs, with one agent, so far. Write a "
            "Gymnasium env whose step() plays the other agents, or an EnvSource with a seat for each of them "
            "(docs/custom_game.md)."
        )


def _image_of(space: spaces.Space) -> spaces.Box | None:
    """The image that the observation is, or begins with where nothing but zeros and ones follows; else None."""
    if isinstance(space, spaces.Tuple):
        binary = all(isinstance(part, spaces.MultiBinary | spaces.Discrete) for part in space.spaces[1:])
        return _image_of(space.spaces[0]) if space.spaces and binary else None
    if isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3, 4):
        return space if (space.low == 0).all() and (space.high == 255).all() else None
    return None


def _axes_of(shape: tuple[int, ...]) -> str:
    """Channels are first where the first of the last three sizes is smaller than the last of them."""
    if len(shape) == 2:
        return "HW"
    return "N" * (len(shape) - 3) + ("CHW" if shape[-3] < shape[-1] else "HWC")


def flat_observation(space: spaces.Space, observation: Any, dtype: str = "float32") -> NDArray[Any]:
    """The observation as `dtype` [D], a copy (envs reuse their buffers); Discrete parts become one-hot.

    Raises:
        EnvError: the env broke its own declaration, or a value is not finite.
    """
    check_observation(space, observation, "an observation")
    if dtype == "uint8":
        check_bytes(space, observation)
    if not isinstance(space, spaces.Box):
        observation = spaces.flatten(space, observation)
    flat = np.array(observation, dtype=dtype).reshape(-1)
    if dtype == "float32" and not np.isfinite(flat).all():
        raise EnvError("an observation is not finite")
    return flat


def action_mask(info: Mapping[str, Any], num_actions: int, game: str = "the env") -> NDArray[np.uint8]:
    """uint8 [A], 1 = legal, from info["action_mask"]; every action is legal where the env names no mask.

    Raises:
        EnvError: `info` is no dict; the mask has another width, other values than 0 and 1, or no legal action.
    """
    given = given_mask(info)
    if given is None:
        return np.ones(num_actions, np.uint8)
    mask = np.asarray(given)
    if mask.shape != (num_actions,):
        raise EnvError(f'info["action_mask"] has shape {list(mask.shape)}; expected [{num_actions}]')
    legal = legal_actions(mask)
    if not np.count_nonzero(legal):
        raise EnvError(f'{no_legal_action(game, 0)}: info["action_mask"] allows none')
    return legal


def check_env(make_env: Callable[[], gymnasium.Env], name: str) -> GameSpec:
    """Build the env, reset it and step it once; its spec.

    Raises:
        ConfigError: the env breaks the Gymnasium interface or its own spaces.
    """
    env = None
    try:
        env = make_env()
        spec = gymnasium_spec(env, name)
        observation, info = env.reset(seed=0)
        flat_observation(env.observation_space, observation, spec.observation_dtype)
        action = int(np.flatnonzero(action_mask(info, spec.num_actions))[0])
        observation, reward, terminated, truncated, info = env.step(int(env.action_space.start) + action)
        if not (terminated or truncated):
            action_mask(info, spec.num_actions)
        flat_observation(env.observation_space, observation, spec.observation_dtype)
        check_reward(float(reward), name, 0)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"The environment {name} does not work: {describe_error(error, CALLERS)}. Expected a Gymnasium env: "
            "reset(seed=...) gives (observation, info), step(action) gives (observation, reward, terminated, "
            "truncated, info)."
        ) from error
    finally:
        closing = close_env(env)
    if closing:
        raise ConfigError(f"The environment {name} does not work: {closing}.")
    return spec


def close_env(env: Any) -> str:
    """Close an env that has a close(). Returns what that raised as a sentence, or ""."""
    close = getattr(env, "close", None)
    if close is None:
        return ""
    try:
        close()
    except Exception as error:  # noqa: BLE001 - a user's env may raise anything
        return f"closing it raised {describe_error(error, CALLERS)}"
    return ""
