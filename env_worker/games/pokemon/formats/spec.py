"""The spec of a battle format, without starting anything."""

from __future__ import annotations

from simul.common.config.schema import PokemonConfig
from simul.common.protocol.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.pokemon.battle_view.set_knowledge import check_sets_known
from simul.env_worker.games.pokemon.doubles import layout as doubles_layout
from simul.env_worker.games.pokemon.encoding import layout
from simul.env_worker.games.pokemon.formats.formats import is_doubles

ENCODER_VERSION = 1  # raise it when a number changes its meaning but not its place


def pokemon_spec(config: PokemonConfig) -> GameSpec:
    """What everybody else must know about the game. Raises ConfigError where a setting does not fit the format."""
    doubles, extras = is_doubles(config.format), layout.extras_of(config)
    if extras.sets:
        check_sets_known(config.format)
    if doubles and extras.attackers == layout.TEAM_SIZE:
        raise ConfigError(
            f"pokemon.damage_attackers: {extras.attackers} asks for blocks that doubles ({config.format}) do not have; "
            "leave it out: each move's damage on either foe is observed anyway."
        )
    return GameSpec(
        name=f"pokemon/{config.format}",
        observation_size=doubles_layout.OBSERVATION_SIZE if doubles else layout.observation_size(extras),
        num_actions=doubles_layout.NUM_ACTIONS if doubles else layout.NUM_ACTIONS,
        observation_dtype="float16",
        seats=2,
        encoder_version=ENCODER_VERSION,
        layout=doubles_layout.slices() if doubles else layout.slices(extras),
    )
