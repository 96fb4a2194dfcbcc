"""What the replays of all games have in common: their folder, and the names of files."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from simul.common.errors import ConfigError

LONGEST_NAME = 150  # characters of a file's name before its numbers
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.@_+-]+")


def make_folder(folder: Path) -> None:
    """Make sure that replays can be written. Raises ConfigError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(
            f"The folder for replays {folder} cannot be written: {error.strerror}. Choose another folder."
        ) from None


def file_stem(players: Sequence[str], worker: int, number: int) -> str:
    """P1-vs-P2-WORKER-NUMBER, of the players by seat."""
    return f"{_NOT_IN_NAMES.sub('-', '-vs-'.join(players))[:LONGEST_NAME]}-{worker}-{number}"
