"""Blokus for the worker: the source and the spec of the configured variant."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from simul.common.config.games.blokus import BlokusConfig
from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING, Trust
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.build import check_turn_game, turn_game_source
from simul.env_worker.games.base.players import Players
from simul.env_worker.games.base.source import TurnGameSource
from simul.env_worker.games.blokus.board import Variant, classic, duo
from simul.env_worker.games.blokus.players.best_first import BestFirstPlayer
from simul.env_worker.games.blokus.players.gtp import GtpPlayer, engine_command
from simul.env_worker.games.blokus.players.largest import LargestPiecePlayer
from simul.env_worker.games.blokus.players.mcts import MctsPlayer
from simul.env_worker.games.blokus.turn_game import Blokus
from simul.env_worker.source import SourceOptions

ENGINE = "gtp"  # the opponent that is a program of its own


def build(config: Config, options: SourceOptions, trust: Trust = NOTHING) -> TurnGameSource:
    """The source of one worker, checked, not yet started. Raises ConfigError."""
    _check_engine(config, any(ENGINE in (each.first.bot, each.second.bot) for each in options.pairings))
    return turn_game_source(game_builder(config), config, options, players(config, trust))


def spec(config: Config, trust: Trust = NOTHING) -> GameSpec:
    """The spec of the variant. Raises ConfigError."""
    _check_engine(config, ENGINE in config.evaluation.opponents)
    return check_turn_game(game_builder(config), config)


def game_builder(config: Config, trust: Trust = NOTHING) -> Callable[[], Blokus]:
    """Builds one game."""
    return partial(Blokus, variant_of(config.blokus))


def variant_of(section: BlokusConfig) -> Variant:
    """The configured board and number of players."""
    return duo() if section.variant == "duo" else classic(section.seats())


def players(config: Config, trust: Trust = NOTHING) -> Players:
    """The scripted opponents."""
    section = config.blokus
    return {
        "largest_piece": LargestPiecePlayer,
        "best_first": lambda: BestFirstPlayer(section.best_first_strength),
        "mcts": lambda: MctsPlayer(section.mcts_rollouts),
        ENGINE: lambda: GtpPlayer(engine_command(section.gtp), section.gtp_timeout_sec, trust=trust),
    }


def _check_engine(config: Config, wanted: bool) -> None:
    """Where the engine plays: raises ConfigError if it cannot be started."""
    if wanted or getattr(config.opponents, ENGINE):
        engine_command(config.blokus.gtp)
