"""The command that plays against a run's policy in a browser."""

from __future__ import annotations

import itertools
import os
import re
import shlex
from pathlib import Path

from simul.common.config.games import game_called

CHECKPOINT = re.compile("[0-9]{9}")
MOST_LOOKED_AT = 1000  # entries of `checkpoints/`
MOST_LETTERS = 500  # a longer line would have to be cut, and would be another command


def play_command(root: Path, game: str) -> str:
    """For a shell, at any free port; empty where `simul play` has nothing to play.

    Args:
        root: the run directory.
        game: of its configuration; "" is none.
    """
    line = f"simul play --checkpoint {shlex.quote(str(root))} --page --page-port 0"
    known = bool(game) and bool(game_called(game).player)
    return line if known and line.isprintable() and len(line) <= MOST_LETTERS and _has_checkpoint(root) else ""


def _has_checkpoint(root: Path) -> bool:
    try:
        with os.scandir(root / "checkpoints") as entries:
            return any(CHECKPOINT.fullmatch(entry.name) for entry in itertools.islice(entries, MOST_LOOKED_AT))
    except OSError:
        return False
