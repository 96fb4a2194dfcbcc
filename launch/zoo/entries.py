"""The entries of the zoo as `simul zoo` shows them, and which of them plays a game."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from rich.table import Table

from simul.common.checkpoints.meta import WEIGHTS_FILE, decode_meta
from simul.common.checkpoints.zoo import CARD, RESULTS, ZOO, zoo_folder, zoo_names
from simul.common.config.opponents import ZOO_PREFIX
from simul.common.config.schema import Config
from simul.common.errors import ConfigError
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import read_regular
from simul.launch.supervisor.checkpoint_files import config_of
from simul.launch.zoo.card import one_line, strength_text

MEGABYTE = 10**6


class Entry(NamedTuple):
    """An entry. `game`: as a command line names it; `size`: bytes of its weights; `trained`: the date."""

    name: str
    game: str
    strength: str
    size: int
    trained: str


def entries(say: Callable[[str], object]) -> list[Entry]:
    """All that ship. `say` gets a sentence for each damaged one, which is left out."""
    found = []
    for name in zoo_names():
        try:
            found.append(_read(name))
        except (OSError, KeyError, TypeError, ValueError, ConfigError, *DECODE_ERRORS) as error:
            reason = one_line(str(error)).rstrip(".")
            say(f"The entry {ZOO_PREFIX}{name} in {ZOO / name} is damaged: {reason}. Install Simul again.")
    return found


def _read(name: str) -> Entry:
    folder = ZOO / name
    meta, results = decode_meta(folder), read_regular(folder / RESULTS)
    strength = strength_text(msgspec.json.decode(results, type=dict[str, dict[str, Any]]), meta.spec.seats)
    size = (folder / WEIGHTS_FILE).stat().st_size
    return Entry(name, config_of(folder, []).game_title, strength, size, meta.time[:10])


def table_of(found: list[Entry]) -> Table:
    """For a terminal; 80 columns are enough."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("name", no_wrap=True)
    table.add_column("game", no_wrap=True)
    table.add_column("strength", overflow="fold")
    table.add_column("MB", no_wrap=True, justify="right")
    table.add_column("trained", no_wrap=True)
    for each in found:
        size = f"{each.size / MEGABYTE:.1f}"
        table.add_row(f"{ZOO_PREFIX}{each.name}", each.game, each.strength, size, each.trained)
    return table


def entries_of_game(config: Config) -> list[str]:
    """`zoo:NAME` of the whole entries of the game that is configured, whatever its other settings are."""
    found = entries(say=lambda sentence: None)
    return [f"{ZOO_PREFIX}{each.name}" for each in found if each.game == config.game_title]


def read_card(name: str) -> str:
    """card.md of NAME, of zoo:NAME, or of the folder of an entry; one that is called as a shipped one is ./NAME.

    Raises ConfigError.
    """
    folder, shipped = Path(name), name.removeprefix(ZOO_PREFIX)
    if shipped in zoo_names() or not os.path.lexists(folder / CARD):
        folder = zoo_folder(f"{ZOO_PREFIX}{shipped}") or folder
    try:
        return read_regular(folder / CARD, links=False).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The card {folder / CARD} cannot be read: {error}.") from None
