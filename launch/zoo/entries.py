"""The entries of the zoo as `simul zoo` shows them, and which of them plays a game."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.table import Table

from simul.common.config.checkpoint_meta import decode_meta
from simul.common.config.schema import Config
from simul.common.config.zoo import CARD, PREFIX, RESULTS, ZOO, zoo_folder, zoo_names
from simul.common.errors import ConfigError
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import read_regular
from simul.launch.supervisor.checkpoint_files import config_of
from simul.launch.zoo.card import strength_text


class Entry(NamedTuple):
    """An entry. `game`: as a command line names it."""

    name: str
    game: str
    strength: str


def entries() -> list[Entry]:
    """All that ship. Raises ConfigError where one is damaged."""
    return [_read(name) for name in zoo_names()]


def _read(name: str) -> Entry:
    folder = ZOO / name
    try:
        strength = strength_text(msgspec.json.decode(read_regular(folder / RESULTS)), decode_meta(folder).spec.seats)
    except (OSError, KeyError, TypeError, ValueError, *DECODE_ERRORS) as error:
        raise ConfigError(f"The entry {PREFIX}{name} in {folder} is damaged: {error}. Install Simul again.") from None
    return Entry(name, config_of(folder, []).game_title, strength)


def table_of(found: list[Entry]) -> Table:
    """For a terminal; 80 columns are enough."""
    table = Table(box=None, pad_edge=False)
    for head in ("name", "game", "strength"):
        table.add_column(head, overflow="fold", no_wrap=head != "strength")
    for each in found:
        table.add_row(f"{PREFIX}{each.name}", each.game, each.strength)
    return table


def entry_that_plays(config: Config) -> str | None:
    """`zoo:NAME` of the first entry of the game that is configured; None where there is none."""
    return next((f"{PREFIX}{each.name}" for each in entries() if each.game == config.game_title), None)


def read_card(name: str) -> str:
    """card.md of NAME, of zoo:NAME, or of the folder of an entry; one that is called as a shipped one is ./NAME.

    Raises ConfigError.
    """
    folder, shipped = Path(name), name.removeprefix(PREFIX)
    if shipped in zoo_names() or not os.path.lexists(folder / CARD):
        folder = zoo_folder(f"{PREFIX}{shipped}") or folder
    try:
        return read_regular(folder / CARD, links=False).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The card {folder / CARD} cannot be read: {error}.") from None
