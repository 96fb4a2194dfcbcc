"""By what a file of results knows players and settings: the same key is the same player, wherever it lies."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from simul.common.checkpoints.meta import WEIGHTS_FILE, read_meta
from simul.common.config.search import SearchConfig
from simul.common.config.trust import programs_of
from simul.common.errors import CheckpointError, ConfigError
from simul.launch.evaluation.contestants import Conditions, Contestants
from simul.launch.ratings.pair_results import DIGITS

BOT = "bot:"  # prefix of the key of a scripted player


def contestant_keys(contestants: Contestants) -> dict[str, str]:
    """Keys by label: of a checkpoint its weights, and its search where it has one; of a bot its name, and its command
    line where it is a program.

    The same key is the same player, wherever its checkpoint lies. Raises ConfigError.
    """
    config, keys = contestants.config, {}
    programs = programs_of(config)
    for each in contestants.listed:
        if each.bot:
            program = programs.get(each.bot)
            keys[each.label] = f"{BOT}{each.bot}" + (f"#{_digest(program)}" if program else "")
            continue
        search = each.search or config.search
        searches = search.worlds or config.learner.algorithm == "alphazero"
        keys[each.label] = checkpoint_key(contestants.served[each.policy], search if searches else None)
    return keys


def checkpoint_key(folder: Path, search: SearchConfig | None = None) -> str:
    """Of a checkpoint that plays with `search`. Raises ConfigError."""
    try:
        weights = read_meta(folder).files[WEIGHTS_FILE][:DIGITS]
    except (CheckpointError, KeyError) as error:
        raise ConfigError(f"The checkpoint {folder} cannot be told apart from others: {error}") from None
    return weights if search is None else f"{weights}#{_digest(search)}"


def settings_of(conditions: Conditions) -> str:
    """Of what decides who wins: the game, its settings but for rewards and processes, openings, mirroring, memory.

    Programs of players are part of the players' keys.
    """
    config = conditions.config
    section = msgspec.to_builtins(config.game_section) | dict.fromkeys(programs_of(config), "")
    played = {key: value for key, value in section.items() if key not in config.game_section.description.beside_play}
    openings, mirrored = config.evaluation.openings, conditions.mirrored
    parts = [config.game, config.game_options, played, openings, conditions.seats, mirrored]
    return _digest([*parts, "zero_state"] if config.server.zero_state else parts)


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted", enc_hook=repr)).hexdigest()[:DIGITS]
