"""A lock on a file: one process at a time, released when it ends, however that happens."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from simul.common.errors import ConfigError
from simul.common.runtime.private_files import open_to_append


@contextlib.contextmanager
def hold_lock(file: Path, refusal: str) -> Iterator[None]:
    """Lock `file`, which is made where there is none. On Windows nothing is locked.

    Raises ConfigError with the sentence `refusal` where another process holds the lock, OSError.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with os.fdopen(open_to_append(file), "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(refusal) from None
        yield
