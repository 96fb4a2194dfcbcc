"""What a format's name says; the simulator itself confirms it before anything is played (teams.py)."""

from __future__ import annotations

import re

from simul.common.config.schema import PokemonConfig
from simul.common.protocol.errors import ConfigError

DOUBLES_NAMES = ("doubles", "vgc", "2v2")


def generation(battle_format: str) -> int:
    """Of a format's name. Raises ConfigError."""
    found = re.match(r"gen([1-9])", battle_format)
    if found is None:
        raise ConfigError(f"pokemon.format: `{battle_format}` names no generation; try gen9randombattle.")
    return int(found.group(1))


def is_doubles(battle_format: str) -> bool:
    """Whether two Pokemon a side stand on the field."""
    return any(name in battle_format for name in DOUBLES_NAMES)


def encoder_of(config: PokemonConfig) -> str:
    """host or python; doubles are encoded in Python, whatever the configuration says."""
    return "python" if is_doubles(config.format) else config.encoder
