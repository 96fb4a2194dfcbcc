"""What the simulator host is told of a configuration."""

from __future__ import annotations

from typing import Any

from simul.common.config.games.pokemon import PokemonConfig
from simul.env_worker.games.pokemon.formats.spec import generation, is_doubles
from simul.env_worker.games.pokemon.tables.host_tables import encoder_tables
from simul.env_worker.games.pokemon.tables.layout import extras_of


def configured_tables(config: PokemonConfig) -> dict[str, Any]:
    """The tables of its format and observation. Raises ConfigError for a format that names no generation."""
    return encoder_tables(generation(config.format), extras_of(config), is_doubles(config.format))
