"""Gymnasium for the worker: the source and the spec of a registered id, or of a class with Gymnasium's interface."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import gymnasium

from simul.common.config.schema import Config
from simul.common.protocol.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.installation import append_working_directory
from simul.common.runtime.named_class import load_class
from simul.env_worker.games.gymnasium.source import GymnasiumSource
from simul.env_worker.games.gymnasium.spaces import check_env, discrete_env
from simul.env_worker.source import SourceOptions

EnvMaker = Callable[[], gymnasium.Env]


def build(config: Config, options: SourceOptions) -> GymnasiumSource:
    """The source of `gymnasium.id`, checked, not yet started. Raises ConfigError."""
    make_env, name = _registered(config)
    return _source(config, _wrapped(make_env, config), name, config.gymnasium.reward_scale, options)


def spec(config: Config) -> GameSpec:
    """The spec of `gymnasium.id`; an env is built, stepped once and closed. Raises ConfigError."""
    make_env, name = _registered(config)
    return check_env(_wrapped(make_env, config), name)


def class_source(config: Config, env_class: Callable[..., Any], options: SourceOptions) -> GymnasiumSource:
    """The source of a class of the user's, the configured `game`. Raises ConfigError."""
    make_env = _wrapped(lambda: env_class(**config.game_options), config)
    return _source(config, make_env, config.game, 1.0, options)


def class_spec(config: Config, env_class: Callable[..., Any]) -> GameSpec:
    """The spec of a class of the user's, the configured `game`. Raises ConfigError."""
    return check_env(_wrapped(lambda: env_class(**config.game_options), config), config.game)


def _wrapped(make_env: EnvMaker, config: Config) -> EnvMaker:
    frames = config.gymnasium.frame_stack
    return lambda: discrete_env(make_env(), frames)


def _source(
    config: Config, make_env: EnvMaker, name: str, reward_scale: float, options: SourceOptions
) -> GymnasiumSource:
    check_env(make_env, name)
    return GymnasiumSource(
        make_env, name=name, reward_scale=reward_scale, max_failed_share=config.workers.max_failed_share,
        **options.of_envs(),
    )  # fmt: skip


def _registered(config: Config) -> tuple[EnvMaker, str]:
    """Builder of one env, and the game's name."""
    env_id, kwargs = config.gymnasium.id, config.gymnasium.kwargs
    name = f"gymnasium/{env_id}"
    if env_id.partition(":")[2].isidentifier():
        made = load_class(env_id)
        return (lambda: made(**kwargs)), name
    if ":" not in env_id and env_id not in gymnasium.registry:
        near = difflib.get_close_matches(env_id, list(gymnasium.registry), 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"Gymnasium knows no environment {env_id!r}.{hint} A class of yours is named module:Class.")
    append_working_directory()  # for `module:Env-v0`, which Gymnasium imports
    return (lambda: gymnasium.make(env_id, disable_env_checker=True, **kwargs)), name
