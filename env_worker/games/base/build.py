"""From a game's factory and players to the source of a worker; used by every game of this kind."""

from __future__ import annotations

import functools
import importlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from simul.common.config.matchups import points_of_values, searches_of
from simul.common.config.schema import Config
from simul.common.config.seats import check_opponents
from simul.common.errors import ConfigError, SimulError
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.error_place import describe_error
from simul.env_worker.games.base.failures import CALLERS
from simul.env_worker.games.base.matchmaking import own_opponents
from simul.env_worker.games.base.own_players import own_players
from simul.env_worker.games.base.players import ANY_GAME, Players
from simul.env_worker.games.base.replays import ReplayFolder, game_settings
from simul.env_worker.games.base.source import TurnGameSource
from simul.env_worker.games.base.turn_game import CHANCE, TurnGame
from simul.env_worker.source import SourceOptions

MOST_CHANCE = 10_000  # chance events before the first decision


def turn_game_source(
    make_game: Callable[[], TurnGame], config: Config, options: SourceOptions, players: Players = ANY_GAME,
    reward_scale: float = 1.0,
) -> TurnGameSource:  # fmt: skip
    """The source of one worker, checked, not yet started. With the algorithm alphazero its policies search.

    Raises ConfigError.

    Args:
        make_game: builds one game, with the configured settings.
        players: the game's scripted players, by the names that its description lists; `random` is added.
    """
    spec = check_turn_game(make_game, config)
    if not options.pairings:
        check_opponents(config, spec)
    build: Callable[..., TurnGameSource] = TurnGameSource
    searches = searches_of(options.pairings)
    if config.learner.algorithm == "alphazero":
        search = importlib.import_module("simul.env_worker.search.source")  # compiles; other games do without
        build = functools.partial(search.SearchSource, search=config.search, searches=searches)
    elif not options.record and any(each.worlds for each in (config.search, *searches.values())):
        search = importlib.import_module("simul.env_worker.search.determinized_source")
        search.rehearse(make_game)
        build = functools.partial(
            search.DeterminizedSource, search=config.search, searches=searches, points_of_value=config.points_of_value,
            own_points=points_of_values(options.pairings),
        )  # fmt: skip
    openings = config.evaluation.openings if options.pairings else 0
    own = own_players(own_opponents(config.opponents, options.pairings), options.trust)
    replays = None
    if options.replays is not None:
        replays = ReplayFolder(
            options.replays, game_settings(config), worker=options.index, pictures=options.replay_player != "none"
        )
    return build(
        make_game, {**ANY_GAME, **players, **own}, opponents=config.opponents, pairings=options.pairings,
        mirror_seed=options.mirror_seed, openings=openings, reward_scale=reward_scale,
        max_failed_share=config.workers.max_failed_share, replays=replays, **options.of_envs(),
    )  # fmt: skip


def check_turn_game(make_game: Callable[[], TurnGame], config: Config) -> GameSpec:
    """Build a game and play to its first decision; its spec.

    Raises:
        ConfigError: the game does not work, or a search would see what is hidden or drawn.
    """
    try:
        game = make_game()
        spec = game.spec
        if not isinstance(spec, GameSpec):
            raise ConfigError(f"{config.game}.spec is a {type(spec).__name__}; expected a simul.GameSpec.")
        game.reset(0)
        _check_first_decision(game)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"The game {config.game} does not work: {describe_error(error, CALLERS)}.") from error
    if game.hidden_information and config.learner.algorithm == "alphazero":
        raise ConfigError(
            f"The game {spec.name} has hidden information, which a search would see; expected a game of perfect "
            "information. Use the algorithm ppo, vtrace or reinforce."
        )
    if game.draws_in_apply and config.learner.algorithm == "alphazero":
        raise ConfigError(
            f"The game {spec.name} draws when an action is applied, and a search would see what comes; expected events "
            "of chance (TurnGame.chance_outcomes). Use the algorithm ppo, vtrace or reinforce."
        )
    return spec


@contextmanager
def failures_as_sentences(game: str) -> Iterator[None]:
    """For a game that is played outside a worker: what its code raises becomes a ConfigError with file and line."""
    try:
        yield
    except (SimulError, BrokenPipeError):
        raise
    except Exception as error:
        raise ConfigError(f"The game {game} failed: {describe_error(error, CALLERS)}.") from error


def _check_first_decision(game: TurnGame) -> None:
    """Raises ConfigError where observation, mask or returns do not have the shapes of the spec."""
    spec, chance = game.spec, random.Random(0)
    for _ in range(MOST_CHANCE):
        if (acting := game.acting()) and acting[0] != CHANCE:
            break
        if not acting:
            raise ConfigError(f"The game {spec.name} is over before anyone has acted.")
        game.apply({CHANCE: game.draw_chance(chance)})
    observation, mask = game.observation(acting[0]), game.mask(acting[0])
    found = (observation.shape, observation.dtype, mask.shape, mask.dtype, len(game.returns()))
    wanted = ((spec.observation_size,), spec.dtype(), (spec.num_actions,), np.dtype(np.uint8), spec.seats)
    names = ("observation's shape", "observation's dtype", "mask's shape", "mask's dtype", "number of returns")
    for name, what, expected in zip(names, found, wanted):
        if what != expected:
            raise ConfigError(f"The game {spec.name}: the {name} is {what}; its spec says {expected}.")
    if not mask.any():
        raise ConfigError(f"The game {spec.name}: no action is legal at the first decision.")
