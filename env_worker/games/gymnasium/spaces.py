"""A Gymnasium env's observations and action masks as flat rows, and its game spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from simul.common.protocol.errors import ConfigError, EnvError
from simul.common.protocol.specs import GameSpec


def gymnasium_spec(env: gymnasium.Env, name: str) -> GameSpec:
    """The game spec of an env with a discrete action space.

    Raises:
        ConfigError: a space is missing, or of a kind that does not flatten.
    """
    _refuse_pettingzoo(env, name)
    actions = getattr(env, "action_space", None)
    if not isinstance(actions, spaces.Discrete):
        raise ConfigError(f"The environment {name} has the action space {actions}; expected gymnasium.spaces.Discrete.")
    observations = getattr(env, "observation_space", None)
    if not isinstance(observations, spaces.Space):
        raise ConfigError(f"The environment {name} has no observation_space; expected a gymnasium.spaces.Space.")
    try:
        size = int(spaces.flatdim(observations))
    except (ValueError, NotImplementedError) as error:
        raise ConfigError(f"The observations of {name} do not flatten to numbers: {error}") from None
    if size < 1:
        raise ConfigError(f"The environment {name} has an empty observation space: {observations}.")
    return GameSpec(name=name, observation_size=size, num_actions=int(actions.n), observation_dtype="float32")


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


def flat_observation(space: spaces.Space, observation: Any) -> NDArray[np.float32]:
    """The observation as float32 [D], a copy (envs reuse their buffers); Discrete parts become one-hot.

    Raises:
        EnvError: the env broke its own declaration, or a value is not finite.
    """
    _check_shape(space, observation, "an observation")
    if not isinstance(space, spaces.Box):
        observation = spaces.flatten(space, observation)
    flat = np.array(observation, dtype=np.float32).reshape(-1)
    if not np.isfinite(flat).all():
        raise EnvError("an observation is not finite")
    return flat


def _check_shape(space: spaces.Space, observation: Any, name: str) -> None:
    """Flattening hides a wrong shape (a transposed image has as many numbers). Raises EnvError."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            if key not in observation:
                raise EnvError(f"{name} lacks {key!r}, which its space declares")
            _check_shape(part, observation[key], f"{name}[{key!r}]")
    elif isinstance(space, spaces.Tuple):
        if len(observation) != len(space.spaces):
            raise EnvError(f"{name} has {len(observation)} parts; its space declares {len(space.spaces)}")
        for i, part in enumerate(space.spaces):
            _check_shape(part, observation[i], f"{name}[{i}]")
    elif isinstance(space, spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete):
        found = np.shape(observation)
        if found != space.shape:
            raise EnvError(f"{name} has shape {list(found)}; its space declares {list(space.shape)}")


def action_mask(info: Mapping[str, Any], num_actions: int) -> NDArray[np.uint8]:
    """uint8 [A], 1 = legal, from info["action_mask"]; every action is legal where the env names no mask.

    Raises:
        EnvError: the mask has another width, or no action is legal.
    """
    given = info.get("action_mask")
    if given is None:
        return np.ones(num_actions, np.uint8)
    mask = np.asarray(given)
    if mask.shape != (num_actions,):
        raise EnvError(f'info["action_mask"] has shape {list(mask.shape)}; expected [{num_actions}]')
    if not mask.any():
        raise EnvError('info["action_mask"] allows no action at all')
    return (mask != 0).astype(np.uint8)


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
        flat_observation(env.observation_space, observation)
        action = int(np.flatnonzero(action_mask(info, spec.num_actions))[0])
        observation, reward, _, _, _ = env.step(int(env.action_space.start) + action)
        flat_observation(env.observation_space, observation)
        if not np.isfinite(float(reward)):
            raise EnvError(f"the first reward is {reward}")
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"The environment {name} does not work: {type(error).__name__}: {error}. Expected a Gymnasium env: "
            "reset(seed=...) gives (observation, info), step(action) gives (observation, reward, terminated, "
            "truncated, info)."
        ) from error
    finally:
        if env is not None and hasattr(env, "close"):
            env.close()
    return spec
