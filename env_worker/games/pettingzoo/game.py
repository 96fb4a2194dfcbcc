"""PettingZoo for the worker: the source and the spec of an environment."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from simul.common.config.named_class import load_class
from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING, Trust
from simul.common.errors import ConfigError, did_you_mean
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.extras import install_extra, pip_install
from simul.env_worker.games.base.build import check_turn_game, turn_game_source
from simul.env_worker.games.base.source import TurnGameSource
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.source import SourceOptions

FAMILIES = ("classic", "butterfly", "mpe", "sisl", "atari")


def build(config: Config, options: SourceOptions, trust: Trust = NOTHING) -> TurnGameSource:
    """The source of `pettingzoo.id`, checked, not yet started. Raises ConfigError."""
    return turn_game_source(game_builder(config, trust), config, options, reward_scale=config.pettingzoo.reward_scale)


def spec(config: Config, trust: Trust = NOTHING) -> GameSpec:
    """The spec of `pettingzoo.id`. Raises ConfigError."""
    return check_turn_game(game_builder(config, trust), config)


def game_builder(config: Config, trust: Trust = NOTHING) -> Callable[[], TurnGame]:
    """Builds one game. Raises ConfigError."""
    try:
        import pettingzoo  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"The package pettingzoo is not installed ({error}). Run: {install_extra('pettingzoo')}"
        ) from error
    env_id = config.pettingzoo.id
    make = load_class(env_id, "function", trust=trust) if ":" in env_id else _registered(env_id)
    return partial(_build_game, partial(make, **config.pettingzoo.kwargs), env_id)


def _build_game(make_env: Callable[[], Any], name: str) -> TurnGame:
    from pettingzoo import AECEnv, ParallelEnv

    from simul.env_worker.games.pettingzoo.adapter import AECGame, ParallelGame

    try:
        env = make_env()
    except ImportError as error:
        raise ConfigError(f"The environment {name} needs packages that are not installed: {error}") from error
    if isinstance(env, AECEnv):
        return AECGame(env, make_env, name)
    if isinstance(env, ParallelEnv):
        return ParallelGame(env, make_env, name)
    raise ConfigError(f"{name} makes a {type(env).__name__}; expected a PettingZoo AECEnv or ParallelEnv.")


def _registered(env_id: str) -> Callable[..., Any]:
    """The builder of FAMILY.NAME_vN: a parallel environment where there is one. Raises ConfigError."""
    family, _, name = env_id.partition(".")
    known = _names(family) if family in FAMILIES else []
    if name not in known:
        every = [f"{each}.{one}" for each in FAMILIES for one in _names(each)]
        hint = did_you_mean(env_id, every) or "."
        raise ConfigError(
            f"PettingZoo has no environment {env_id!r}{hint} Expected FAMILY.NAME_vN, such as "
            "classic.connect_four_v3, or module:function of your own."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # newer versions prefer a registry; older have none
            module = importlib.import_module(f"pettingzoo.{env_id}")
        found: Callable[..., Any] = module.parallel_env if hasattr(module, "parallel_env") else module.env
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"The environment {env_id} needs packages that are not installed ({error}). "
            f"Run: {pip_install(f'pettingzoo[{family}]')}"
        ) from error
    return found


def _names(family: str) -> list[str]:
    """Names of a family's environments; [] where the family is not installed."""
    try:
        package = importlib.import_module(f"pettingzoo.{family}")
    except ImportError:
        return []
    return [module.name for module in pkgutil.iter_modules(package.__path__) if module.name[-1:].isdigit()]
