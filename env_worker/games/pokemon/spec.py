"""The spec of a battle format, without starting anything."""

from __future__ import annotations

from common.config import PokemonConfig
from common.specs import GameSpec
from env_worker.games.pokemon.layout import NUM_ACTIONS, observation_size, slices

ENCODER_VERSION = 1  # raise it when a number changes its meaning but not its place


def pokemon_spec(config: PokemonConfig) -> GameSpec:
    """What everybody else must know about the game; pure and fast."""
    return GameSpec(
        name=f"pokemon/{config.format}",
        observation_size=observation_size(config.damage_attackers),
        num_actions=NUM_ACTIONS,
        observation_dtype="float16",
        seats=2,
        encoder_version=ENCODER_VERSION,
        layout=slices(config.damage_attackers),
    )
