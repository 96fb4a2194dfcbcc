"""Builds the source of the configured game. The only module that knows which games exist."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import msgspec

from simul.common.config.matchups import Pairing
from simul.common.config.schema import Config, PokemonConfig
from simul.common.protocol.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.installation import SETUP_POKEMON, append_working_directory, import_user_module
from simul.env_worker.games.gymnasium.source import GymnasiumSource
from simul.env_worker.games.gymnasium.spaces import check_env
from simul.env_worker.games.pokemon.simulator.folder import SIM_HOST
from simul.env_worker.source import EnvSource

SOURCE_METHODS = (
    "start",
    "poll",
    "act",
    "episode",
    "abort",
    "set_policies",
    "drain",
    "idle",
    "files",
    "metrics",
    "close",
)


def build_source(
    config: Config, *, index: int, episodes: int | None, greedy: bool, record: bool,
    life: int = 0, pairings: Sequence[Pairing] = (), replays: Path | None = None,
) -> EnvSource:  # fmt: skip
    """The source that worker `index` hosts, checked, not yet started.

    Args:
        index: of the worker; workers share no seeds.
        episodes: an evaluation of exactly this many, with seeds that training never uses; None: training, no end.
        pairings, replays: Pokémon only: matchups of an evaluation, and the folder for logs of its battles.
        life: run_id of the worker, so that a restarted one draws other seeds; 0: the same ones.

    Raises:
        ConfigError: the game is unknown, or its env breaks the interface.
    """
    seed = worker_seed(config.seed, index, evaluation=episodes is not None, life=life)
    common: dict[str, Any] = {
        "envs": config.workers.envs, "seed": seed, "record": record, "greedy": greedy, "episodes": episodes,
    }  # fmt: skip
    if config.game == "pokemon":
        from simul.env_worker.games.pokemon.source.source import PokemonSource

        check_simulator()
        pokemon = _pokemon_of(config, index)
        common |= {"discount": config.learner.discount, "pairings": pairings, "replays": replays}
        common["mirror_seed"] = worker_seed(config.seed, 0, evaluation=True)
        return PokemonSource(pokemon, config.opponents, index=index, **common)
    if replays is not None:
        raise ConfigError(f"Replays are written of Pokémon battles; the game is {config.game}. Leave --replays out.")
    if offers := _own_source(config):
        return _checked(offers(**config.game_options, index=index, **common), config.game)
    make_env, name, reward_scale = _env_maker(config)
    check_env(make_env, name)
    return GymnasiumSource(make_env, name=name, reward_scale=reward_scale, **common)


def game_spec(config: Config) -> GameSpec:
    """The spec of the configured game; an env is built, stepped once and closed. Raises ConfigError."""
    if config.game == "pokemon":
        from simul.env_worker.games.pokemon.formats.teams import check_battles
        from simul.env_worker.games.pokemon.source.source import pokemon_spec

        check_simulator()
        check_battles(_pokemon_of(config, 0))  # raises before other processes are started
        return pokemon_spec(config.pokemon)
    if offers := _own_source(config):
        source = _checked(
            offers(**config.game_options, index=0, envs=1, seed=0, record=False, greedy=False, episodes=None),
            config.game,
        )
        source.close()
        return source.spec
    make_env, name, _ = _env_maker(config)
    return check_env(make_env, name)


def _pokemon_of(config: Config, index: int) -> PokemonConfig:
    """The section for worker `index`: with its share of what is limited for all workers together."""
    from simul.env_worker.games.pokemon.showdown.shares import share_of

    return msgspec.structs.replace(
        config.pokemon, servers=share_of(config.pokemon.servers, index, config.workers.count)
    )


def check_simulator() -> None:
    """Raises ConfigError where the simulator is not installed."""
    if not (SIM_HOST / "node_modules" / "pokemon-showdown" / "package.json").is_file():
        raise ConfigError(f"The simulator's npm packages are missing. Run `{SETUP_POKEMON}`.")


def worker_seed(seed: int, index: int, *, evaluation: bool, life: int = 0) -> int:
    """48-bit seed (exact in JavaScript): no two workers or lives share games, nor do training and evaluation."""
    text = f"{seed}/{index}/{life}/{'evaluation' if evaluation else 'training'}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "little")


def load_class(name: str) -> Callable[..., Any]:
    """The class (or factory) called `module:Class`. Raises ConfigError."""
    module_name, _, class_name = name.partition(":")
    try:
        module = import_user_module(module_name)
    except Exception as error:
        raise ConfigError(
            f"The module {module_name!r} of {name!r} cannot be imported: {type(error).__name__}: {error}. "
            "Run from the directory that holds it, or install it."
        ) from error
    found = getattr(module, class_name, None)
    if not callable(found):
        near = difflib.get_close_matches(class_name, [n for n in dir(module) if not n.startswith("_")], 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"The module {module_name!r} has no class {class_name!r}.{hint}")
    return found


def _own_source(config: Config) -> Callable[..., Any] | None:
    """The class of `game` if it is an EnvSource; None for a Gymnasium env."""
    if ":" not in config.game:
        if config.game != "gymnasium":
            raise ConfigError(f"Unknown game {config.game!r}; expected pokemon, gymnasium, or module:Class.")
        return None
    offers = load_class(config.game)
    return offers if callable(getattr(offers, "poll", None)) and callable(getattr(offers, "act", None)) else None


def _checked(source: Any, name: str) -> EnvSource:
    missing = [method for method in SOURCE_METHODS if not callable(getattr(source, method, None))]
    missing += [field for field in ("spec", "envs") if not hasattr(source, field)]
    if missing:
        raise ConfigError(f"{name} offers poll and act, but lacks {', '.join(missing)} of an EnvSource.")
    if not isinstance(source.spec, GameSpec):
        raise ConfigError(f"{name}.spec is a {type(source.spec).__name__}; expected a simul.GameSpec.")
    return source


def _env_maker(config: Config) -> tuple[Callable[[], gymnasium.Env], str, float]:
    """Builder of one env, the game's name, and the reward scale."""
    if config.game != "gymnasium":
        options, own = config.game_options, load_class(config.game)
        return (lambda: own(**options)), config.game, 1.0
    env_id, kwargs, scale = config.gymnasium.id, config.gymnasium.kwargs, config.gymnasium.reward_scale
    name = f"gymnasium/{env_id}"
    if env_id.partition(":")[2].isidentifier():
        made = load_class(env_id)
        return (lambda: made(**kwargs)), name, scale
    if ":" not in env_id and env_id not in gymnasium.registry:
        near = difflib.get_close_matches(env_id, list(gymnasium.registry), 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"Gymnasium knows no environment {env_id!r}.{hint} A class of yours is named module:Class.")
    append_working_directory()  # for `module:Env-v0`, which Gymnasium imports
    return (lambda: gymnasium.make(env_id, disable_env_checker=True, **kwargs)), name, scale
