"""Pokémon for the worker: the source and the spec of the configured format."""

from __future__ import annotations

import msgspec

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING, Trust
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.matchmaking import asked_own_opponents, own_opponents
from simul.env_worker.games.pokemon.formats.spec import generation, is_doubles
from simul.env_worker.games.pokemon.formats.team_draws import check_battles
from simul.env_worker.games.pokemon.install.folder import check_simulator
from simul.env_worker.games.pokemon.opponents.player_keeper import Battles, check_own_players
from simul.env_worker.games.pokemon.showdown.shares import share_of
from simul.env_worker.games.pokemon.source.own_code import observed_spec
from simul.env_worker.games.pokemon.source.source import PokemonSource
from simul.env_worker.source import SourceOptions


def build(config: Config, options: SourceOptions, trust: Trust = NOTHING) -> PokemonSource:
    """The source of worker `options.index`, not yet started. Raises ConfigError."""
    check_simulator()
    for name in own_opponents(config.opponents, options.pairings):
        trust.check_name(name)
    return PokemonSource(
        _of_worker(config, options.index), config.opponents, index=options.index, discount=config.learner.discount,
        mirror_seed=options.mirror_seed, pairings=options.pairings, replays=options.replays,
        replay_player=options.replay_player, max_failed_share=config.workers.max_failed_share, trust=trust,
        **options.of_envs(),
    )  # fmt: skip


def spec(config: Config, trust: Trust = NOTHING) -> GameSpec:
    """The spec of the format; the simulator has confirmed format and teams. Raises ConfigError."""
    observed = observed_spec(config.pokemon, trust)
    check_simulator()
    check_battles(_of_worker(config, 0), trust)  # raises before other processes are started
    battle_format = config.pokemon.format
    battles = Battles(battle_format, generation(battle_format), is_doubles(battle_format))
    check_own_players(asked_own_opponents(config), battles)
    return observed


def _of_worker(config: Config, index: int) -> PokemonConfig:
    """The section for worker `index`: with its share of what is limited for all workers together."""
    return msgspec.structs.replace(
        config.pokemon, servers=share_of(config.pokemon.servers, index, config.workers.count)
    )
