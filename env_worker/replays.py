"""What the replays of all games have in common: their folder."""

from __future__ import annotations

import tempfile
from pathlib import Path

from simul.common.protocol.errors import ConfigError


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
