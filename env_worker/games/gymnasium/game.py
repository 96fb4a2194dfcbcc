"""Gymnasium for the worker: the source and the spec of a registered id, or of a class with Gymnasium's interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium

from simul.common.config.named_class import load_class
from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING, Trust
from simul.common.errors import ConfigError, did_you_mean
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.installation import append_working_directory
from simul.env_worker.games.gymnasium.replays import EpisodeRecorder, drawing_env
from simul.env_worker.games.gymnasium.source import GymnasiumSource
from simul.env_worker.games.gymnasium.spaces import check_env, discrete_env
from simul.env_worker.replays import make_folder
from simul.env_worker.source import SourceOptions

EnvBuilder = Callable[..., gymnasium.Env]


def build(config: Config, options: SourceOptions, trust: Trust = NOTHING) -> GymnasiumSource:
    """The source of `gymnasium.id`, checked, not yet started. Raises ConfigError."""
    make_env, name = _registered(config, trust)
    return _source(config, _wrapped(make_env, config), name, options)


def spec(config: Config, trust: Trust = NOTHING) -> GameSpec:
    """The spec of `gymnasium.id`; an env is built, stepped once and closed. Raises ConfigError."""
    make_env, name = _registered(config, trust)
    return check_env(_wrapped(make_env, config), name)


def class_source(config: Config, env_class: Callable[..., Any], options: SourceOptions) -> GymnasiumSource:
    """The source of a class of the user's, the configured `game`. Raises ConfigError."""
    make = _wrapped(_builder(env_class, config.game_options), config)
    return _source(config, make, config.game, options)


def class_spec(config: Config, env_class: Callable[..., Any]) -> GameSpec:
    """The spec of a class of the user's, the configured `game`. Raises ConfigError."""
    return check_env(_wrapped(_builder(env_class, config.game_options), config), config.game)


def _wrapped(make: EnvBuilder, config: Config) -> EnvBuilder:
    options = config.gymnasium
    return lambda **more: discrete_env(make(**more), options.frame_stack, options.ids, options.max_entities)


def _source(config: Config, make: EnvBuilder, name: str, options: SourceOptions) -> GymnasiumSource:
    check_env(make, name)
    of_envs: dict[str, Any] = {
        "reward_scale": config.gymnasium.reward_scale, "max_failed_share": config.workers.max_failed_share,
        **options.of_envs(),
    }  # fmt: skip
    if options.replays is None:
        return GymnasiumSource(make, name=name, **of_envs)
    make_folder(options.replays)
    recorder = partial(EpisodeRecorder, options.replays, name, options.index)
    drawing = None if options.replay_player == "none" else drawing_env(make, name)
    if drawing is None:
        return GymnasiumSource(make, name=name, recorder=recorder, **of_envs)
    of_envs["envs"] = 1  # RecordVideo keeps the pictures of an episode in memory
    return GymnasiumSource(drawing, name=name, recorder=recorder, **of_envs)


def _builder(env_class: Callable[..., Any], kwargs: Mapping[str, Any]) -> EnvBuilder:
    """Builds the env with its configured keyword arguments and those of the call."""
    return lambda **more: env_class(**{**kwargs, **more})


def _registered(config: Config, trust: Trust) -> tuple[EnvBuilder, str]:
    """Builder of one env, and the game's name."""
    env_id, kwargs = config.gymnasium.id, config.gymnasium.kwargs
    name = f"gymnasium/{env_id}"
    if env_id.partition(":")[2].isidentifier():
        return _builder(load_class(env_id, trust=trust), kwargs), name
    if ":" in env_id:
        trust.check_name(env_id)
        append_working_directory()  # for `module:Env-v0`, which Gymnasium imports
    elif env_id not in gymnasium.registry:
        hint = did_you_mean(env_id, gymnasium.registry) or "."
        raise ConfigError(f"Gymnasium knows no environment {env_id!r}{hint} A class of yours is named module:Class.")
    return _builder(partial(gymnasium.make, env_id, disable_env_checker=True), kwargs), name
