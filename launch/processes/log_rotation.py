"""Keeps the logs of a run bounded: a log beyond MOST_LOG_BYTES is copied to `NAME.log.1` and emptied.

The file stays the same one, because a role writes to it through its inherited stderr. It is open for appending, so
the role's next line begins the emptied file. Lines written between the copy and the truncation are lost.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

from simul.common.runtime.private_files import open_new, open_to_change

MOST_LOG_BYTES = 32 * 2**20
OLD_SUFFIX = ".1"


def rotate_logs(folder: Path, most_bytes: int = MOST_LOG_BYTES) -> None:
    """Rotate what is larger than `most_bytes`; it replaces the last rotated log. Links are left alone.

    Where the copy cannot be written (disk full) the log stays as it is.
    """
    for log in folder.glob("*.log"):
        with contextlib.suppress(OSError):  # the log or the folder was removed meanwhile
            found = log.lstat()
            if stat.S_ISREG(found.st_mode) and found.st_size > most_bytes:
                _rotate(log)


def _rotate(log: Path) -> None:
    """Raises OSError."""
    aside = log.with_name(f".{log.name}{OLD_SUFFIX}")
    try:
        with os.fdopen(open_to_change(log), "rb+") as file:
            with os.fdopen(open_new(aside), "wb") as copy:
                shutil.copyfileobj(file, copy, 2**20)
            aside.replace(log.with_name(log.name + OLD_SUFFIX))
            file.truncate(0)
    finally:
        aside.unlink(missing_ok=True)
