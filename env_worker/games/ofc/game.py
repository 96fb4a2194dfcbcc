"""Open Face Chinese for the worker: the source and the spec of the configured table."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np

from simul.common.config.games.ofc import OfcConfig
from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING, Trust
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.build import turn_game_source, turn_game_spec
from simul.env_worker.games.base.players import Players
from simul.env_worker.games.base.source import TurnGameSource
from simul.env_worker.games.ofc.fantasyland import best_board
from simul.env_worker.games.ofc.players import MonteCarloPlayer, RulePlayer
from simul.env_worker.games.ofc.rules import FANTASY_CARDS, Rules
from simul.env_worker.games.ofc.table import OfcGame
from simul.env_worker.source import SourceOptions


def build(config: Config, options: SourceOptions, trust: Trust = NOTHING) -> TurnGameSource:
    """The source of the configured table, checked and compiled, not yet started. Raises ConfigError."""
    compile_loops(rules(config.ofc))
    return turn_game_source(
        game_builder(config), config, options, players(config), reward_scale=config.ofc.reward_scale
    )  # fmt: skip


def spec(config: Config, trust: Trust = NOTHING) -> GameSpec:
    """The spec of the configured table. Raises ConfigError."""
    return turn_game_spec(game_builder(config), config)


def game_builder(config: Config, trust: Trust = NOTHING) -> Callable[[], OfcGame]:
    """Builds one game. Raises ConfigError."""
    return partial(OfcGame, rules(config.ofc))


def players(config: Config, trust: Trust = NOTHING) -> Players:
    """The scripted opponents."""
    return {"rule_based": RulePlayer, "monte_carlo": partial(MonteCarloPlayer, config.ofc.rollouts)}


def rules(section: OfcConfig) -> Rules:
    """The rules that the section `ofc` sets. Raises ConfigError."""
    return Rules(
        players=section.players, hands=section.hands, fantasyland=section.fantasyland, stay=section.stay,
        progressive=section.progressive, jokers=section.jokers, button=section.button, stay_value=section.stay_value,
        foul_cost=section.foul_cost,
    )  # fmt: skip


def compile_loops(rules: Rules) -> None:
    """Compile what a table and its scripted players call, by playing a game of them.

    That takes a minute where there is no cache. A worker does it before it connects: the server drops a client that is
    silent for `server.client_timeout_sec`.
    """
    best_board(np.arange(FANTASY_CARDS, dtype=np.int8), rules.stay_value, rules.full_house_stays)
    game, scripted, draw = OfcGame(rules), (MonteCarloPlayer(1, 1), RulePlayer()), random.Random(0)
    game.reset(0)
    while acting := game.acting():
        game.observation(acting[0])
        action = [player.choose(game, acting[0], draw) for player in scripted][-1]
        game.apply({acting[0]: action})
    game.render()
