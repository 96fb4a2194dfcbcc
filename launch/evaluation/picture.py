"""A picture that a command was asked for: whether it can be written, before any game, and its file."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from simul.common.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")


def check_picture(option: str, file: Path) -> None:
    """Raises ConfigError for a picture that cannot be drawn. `option`: that names it."""
    folder = file.absolute().parent
    if file.suffix not in FORMATS:
        raise ConfigError(f"{option} {file}: expected a name that ends in {' or '.join(FORMATS)}.")
    if not folder.is_dir():
        raise ConfigError(f"{option} {file}: there is no folder {folder}.")
    if file.is_dir():
        raise ConfigError(f"{option} {file}: expected a file to write the picture to; this is a folder.")
    try:
        if not file.exists():
            tempfile.TemporaryFile(dir=folder).close()  # permissions alone do not tell: root, file systems
        elif not os.access(file, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _unwritable(file, error) from None


def save_picture(figure: Figure, file: Path) -> None:
    """Draw it. Raises ConfigError where the file cannot be written."""
    try:
        figure.savefig(file)
    except OSError as error:
        raise _unwritable(file, error) from None


def _unwritable(file: Path, error: OSError) -> ConfigError:
    return ConfigError(f"The picture {file} cannot be written: {error.strerror or error}. Choose another place.")
