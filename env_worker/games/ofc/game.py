"""Open Face Chinese for the worker: the source and the spec of the configured table."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from simul.common.config.automatic import AUTO
from simul.common.config.games.ofc import OfcConfig
from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING, Trust
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.build import check_turn_game, turn_game_source
from simul.env_worker.games.base.players import Players
from simul.env_worker.games.base.source import TurnGameSource
from simul.env_worker.games.base.turn_game import Player
from simul.env_worker.games.ofc.fantasyland import best_board
from simul.env_worker.games.ofc.players import FantasyRulesPlayer, MonteCarloPlayer, RulePlayer
from simul.env_worker.games.ofc.rules import FANTASY_CARDS, Rules
from simul.env_worker.games.ofc.table import OfcGame
from simul.env_worker.source import SourceOptions


def build(config: Config, options: SourceOptions, trust: Trust = NOTHING) -> TurnGameSource:
    """The source of the configured table, checked and compiled, not yet started. Raises ConfigError."""
    scripted = players(config)
    bots = {each.bot for pairing in options.pairings for each in (pairing.first, pairing.second)}
    played = bots or {kind for kind, share in config.opponents.shares().items() if share}
    compile_loops(rules(config.ofc), [make() for kind, make in scripted.items() if kind in played])
    return turn_game_source(
        game_builder(config), config, options, scripted, reward_scale=config.ofc.reward_scale
    )  # fmt: skip


def spec(config: Config, trust: Trust = NOTHING) -> GameSpec:
    """The spec of the configured table. Raises ConfigError."""
    return check_turn_game(game_builder(config), config)


def game_builder(config: Config, trust: Trust = NOTHING) -> Callable[[], OfcGame]:
    """Builds one game. Raises ConfigError."""
    return partial(OfcGame, rules(config.ofc))


def players(config: Config, trust: Trust = NOTHING) -> Players:
    """The scripted opponents."""
    monte_carlo = partial(MonteCarloPlayer, config.ofc.rollouts, rollouts_by=config.ofc.rollouts_by)
    return {"rule_based": RulePlayer, "fantasy_rules": FantasyRulesPlayer, "monte_carlo": monte_carlo}


def rules(section: OfcConfig) -> Rules:
    """The rules that the section `ofc` sets. Raises ConfigError."""
    return Rules(
        players=section.players, hands=section.hands, fantasyland=section.fantasyland, stay=section.stay,
        progressive=section.progressive, jokers=section.jokers, button=section.button, stay_value=section.stay_value,
        foul_cost=section.foul_cost,
        final_foul_cost=section.foul_cost if section.final_foul_cost == AUTO else section.final_foul_cost,
    )  # fmt: skip


def compile_loops(rules: Rules, scripted: Sequence[Player]) -> None:
    """Compile what a table and these players call, by playing a game.

    That takes up to a minute where there is no cache. A worker does it before it connects: the server drops a client
    that is silent for `server.client_timeout_sec`.
    """
    best_board(np.arange(FANTASY_CARDS, dtype=np.int8), rules.stay_value, rules.full_house_stays)
    game, draw = OfcGame(rules), random.Random(0)
    game.reset(0)
    while acting := game.acting():
        seat = acting[0]
        game.observation(seat)
        for player in scripted:
            player.choose(game, seat, draw)
        game.apply({seat: int(game.legal_actions(seat)[0])})
    game.render()
