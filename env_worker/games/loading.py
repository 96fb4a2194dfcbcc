"""From the configuration to the source of its game, one of `simul.common.config.games` or a class of the user's.

A built-in game NAME is the folder `env_worker/games/NAME/`, whose module `game` offers `build` and `spec`.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

from simul.common.config.games import GAMES, game_called
from simul.common.config.matchups import Pairing
from simul.common.config.named_class import load_class
from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING, Trust, check_trust, values_to_trust
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.build import check_turn_game, turn_game_source
from simul.env_worker.games.base.matchmaking import asked_own_opponents
from simul.env_worker.games.base.own_players import check_own_players
from simul.env_worker.games.base.players import ANY_GAME, Players
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.games.gymnasium.game import class_source, class_spec
from simul.env_worker.source import EnvSource, ReplayPlayer, SourceOptions

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


class GameModule(Protocol):
    """The module `simul.env_worker.games.NAME.game` of the built-in game NAME."""

    def build(self, config: Config, options: SourceOptions, trust: Trust) -> EnvSource:
        """The source of one worker, not yet started. Raises ConfigError."""

    def spec(self, config: Config, trust: Trust) -> GameSpec:
        """The spec of the configured game, after checks of its settings. Raises ConfigError."""


def build_source(
    config: Config, *, index: int, episodes: int | None, greedy: bool, record: bool,
    life: int = 0, pairings: Sequence[Pairing] = (), replays: Path | None = None,
    replay_player: ReplayPlayer = "own", trust: Trust = NOTHING,
) -> EnvSource:  # fmt: skip
    """The source that worker `index` hosts, checked, not yet started.

    Args:
        index: of the worker; workers share no seeds.
        episodes: an evaluation of exactly this many, with seeds that training never uses; None: training, no end.
        pairings: matchups of an evaluation, for a game that plays them.
        replays, replay_player: see SourceOptions; for a game that writes replays.
        trust: in the code that the configuration names.
        life: run_id of the worker, so that a restarted one draws other seeds; 0: the same ones.

    Raises:
        ConfigError: the game is unknown, or its env breaks the interface.
    """
    if replays is not None and config.game in GAMES and not game_called(config.game).replays:
        raise ConfigError(f"The game {config.game} writes no replays. Leave --replays out.")
    options = SourceOptions(
        index=index, envs=config.workers.envs, record=record, greedy=greedy, episodes=episodes,
        seed=worker_seed(config.seed, index, evaluation=episodes is not None, life=life),
        mirror_seed=worker_seed(config.seed, 0, evaluation=True), pairings=pairings, replays=replays,
        replay_player=replay_player, trust=trust,
    )  # fmt: skip
    _check_trust(config, trust)
    if config.game in GAMES:
        return _module_of(config.game).build(config, options, trust)
    offers = _own_class(config, trust)
    if replays is not None and _is_source(offers):
        raise ConfigError(f"The game {config.game} writes no replays. Leave --replays out.")
    if _is_turn_game(offers):
        _refuse_gymnasium(config, "a TurnGame")
        return turn_game_source(partial(offers, **config.game_options), config, options)
    _refuse_opponents(config, pairings)
    _refuse_search(config)
    return _own_source(config, offers, options) if _is_source(offers) else class_source(config, offers, options)


def game_spec(config: Config, trust: Trust = NOTHING) -> GameSpec:
    """The spec of the configured game; an env is built, stepped once and closed. Raises ConfigError."""
    _check_trust(config, trust)
    if config.game in GAMES:
        module = _module_of(config.game)
        if hasattr(module, "game_builder"):
            _check_own_players(config, trust)
        return module.spec(config, trust)
    offers = _own_class(config, trust)
    if _is_turn_game(offers):
        _refuse_gymnasium(config, "a TurnGame")
        _check_own_players(config, trust)
        return check_turn_game(partial(offers, **config.game_options), config)
    _refuse_opponents(config)
    _refuse_search(config)
    if not _is_source(offers):
        return class_spec(config, offers)
    options = SourceOptions(index=0, envs=1, seed=0, record=False, greedy=False, episodes=None)
    source = _own_source(config, offers, options)
    source.close()
    return source.spec


def turn_game(config: Config, trust: Trust = NOTHING) -> Callable[[], TurnGame]:
    """Builds the configured game outside a source. Raises ConfigError where it is no TurnGame."""
    _check_trust(config, trust)
    if config.game not in GAMES:
        offers = _own_class(config, trust)
        if _is_turn_game(offers):
            return partial(offers, **config.game_options)
    elif builder := getattr(_module_of(config.game), "game_builder", None):
        return cast(Callable[[], TurnGame], builder(config, trust))
    raise ConfigError(f"The game {config.game} is not a simul.TurnGame, which alone can be played move by move.")


def scripted_players(config: Config, trust: Trust = NOTHING) -> Players:
    """The scripted players of the configured TurnGame, by kind."""
    _check_trust(config, trust)
    own = getattr(_module_of(config.game), "players", None) if config.game in GAMES else None
    return {**ANY_GAME, **(own(config, trust) if own is not None else {})}


def _module_of(game: str) -> GameModule:
    """Imported here, because one game's packages are large and another game does without them."""
    return cast(GameModule, importlib.import_module(f"simul.env_worker.games.{game}.game"))


def worker_seed(seed: int, index: int, *, evaluation: bool, life: int = 0) -> int:
    """48-bit seed (exact in JavaScript): no two workers or lives share games, nor do training and evaluation."""
    text = f"{seed}/{index}/{life}/{'evaluation' if evaluation else 'training'}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "little")


def _check_trust(config: Config, trust: Trust) -> None:
    check_trust(values_to_trust(config), trust, "The configuration")


def _check_own_players(config: Config, trust: Trust) -> None:
    check_own_players(asked_own_opponents(config), trust)


def _own_class(config: Config, trust: Trust) -> Callable[..., Any]:
    """The class that `game` names. Raises ConfigError."""
    if ":" not in config.game:
        raise ConfigError(f"Unknown game {config.game!r}; expected {', '.join(GAMES)}, or module:Class.")
    return load_class(config.game, trust=trust)


def _is_source(offers: Callable[..., Any]) -> bool:
    """True for a class of an EnvSource, False for one of a Gymnasium env."""
    return callable(getattr(offers, "poll", None)) and callable(getattr(offers, "act", None))


def _is_turn_game(offers: Callable[..., Any]) -> bool:
    """True for a class of a TurnGame."""
    return isinstance(offers, type) and issubclass(offers, TurnGame)


def _refuse_opponents(config: Config, pairings: Sequence[Pairing] = ()) -> None:
    """Raises ConfigError where an env of one seat, or a source, would need scripted opponents."""
    opponents = config.opponents
    if opponents.random or opponents.classes or config.evaluation.opponents or pairings:  # type: ignore[attr-defined]
        raise ConfigError(
            f"{config.game} is not a simul.TurnGame, which alone has scripted opponents and plays evaluations of "
            "several contestants. Leave opponents out, and name one --checkpoint."
        )


def _refuse_gymnasium(config: Config, kind: str) -> None:
    """Raises ConfigError where settings of Gymnasium envs are given for a game of another `kind`."""
    for key, given in (
        ("frame_stack", config.gymnasium.frame_stack != 1), ("reward_scale", config.gymnasium.reward_scale != 1.0),
        ("ids", config.gymnasium.ids != "one_hot"), ("max_entities", config.gymnasium.max_entities),
    ):  # fmt: skip
        if given:
            raise ConfigError(
                f"gymnasium.{key} is for Gymnasium environments; {config.game} is {kind}. Leave {key} out."
            )


def _refuse_search(config: Config) -> None:
    """Raises ConfigError where a game that is no TurnGame is to be searched."""
    if config.learner.algorithm == "alphazero":
        raise ConfigError(f"alphazero searches games that are a simul.TurnGame; {config.game} is none. Use ppo.")


def _own_source(config: Config, offers: Callable[..., Any], options: SourceOptions) -> EnvSource:
    """Raises ConfigError where the class breaks the interface."""
    _refuse_gymnasium(config, "an EnvSource")
    source = offers(**config.game_options, index=options.index, **options.of_envs())
    missing = [method for method in SOURCE_METHODS if not callable(getattr(source, method, None))]
    missing += [field for field in ("spec", "envs") if not hasattr(source, field)]
    if missing:
        raise ConfigError(f"{config.game} offers poll and act, but lacks {', '.join(missing)} of an EnvSource.")
    if not isinstance(source.spec, GameSpec):
        raise ConfigError(f"{config.game}.spec is a {type(source.spec).__name__}; expected a simul.GameSpec.")
    return cast(EnvSource, source)
