"""Keeps the logs of a run bounded: a log beyond MOST_LOG_BYTES is copied to `NAME.log.1` and emptied.

The file stays the same one, because a role writes to it through its inherited stderr. It is open for appending, so
the role's next line begins the emptied file. Lines written between the copy and the truncation are lost.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

MOST_LOG_BYTES = 32 * 2**20
OLD_SUFFIX = ".1"


def rotate_logs(folder: Path, most_bytes: int = MOST_LOG_BYTES) -> None:
    """Rotate what is larger than `most_bytes`; the log of before that replaces the last one.

    Where the copy cannot be written (disk full) the log stays as it is.
    """
    with contextlib.suppress(OSError):  # a log or the folder was removed meanwhile
        for log in folder.glob("*.log"):
            if log.stat().st_size > most_bytes:
                aside = log.with_name(f".{log.name}{OLD_SUFFIX}")
                try:
                    shutil.copyfile(log, aside)
                    aside.replace(log.with_name(log.name + OLD_SUFFIX))
                    os.truncate(log, 0)
                finally:
                    aside.unlink(missing_ok=True)
