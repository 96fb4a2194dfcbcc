"""Temporary folders that their process removes at its end; the next process removes those of killed ones."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from simul.common.config.run_directory import RunDir
from simul.common.launch.processes import run_lock
from simul.common.launch.processes.run_lock import ProcessIdentity

ANY_KIND = "simul-"
OWNERLESS_SEC = 600.0  # a younger folder without an owner file is being set up


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder for the time of the block; it may hold a run directory."""
    folder = make_folder(prefix)
    try:
        yield folder
    finally:
        RunDir(folder).remove()


def make_folder(prefix: str) -> Path:
    """A folder that this process owns and removes with `RunDir.remove`. `prefix`: ANY_KIND, then the kind's name."""
    remove_leftovers(prefix, Path(tempfile.gettempdir()), time.time())
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    run_lock.claim(RunDir(folder))
    return folder


def remove_leftovers(prefix: str, parent: Path, now: float) -> list[Path]:
    """Remove the folders whose owners are dead; those that cannot be removed (another user's) stay.

    So do those of another machine, or of another container that shares the folder for temporary files.

    A folder with an owner file may be of any kind, so that any command removes those of a killed one. A folder without
    is removed only if its name begins with `prefix`: sockets of runs lie in the same place.

    Args:
        now: seconds since the epoch.
    """
    removed = []
    for folder in parent.glob(f"{ANY_KIND}*"):
        try:
            owner = msgspec.json.decode((folder / run_lock.OWNER_FILE).read_bytes(), type=ProcessIdentity)
            dead = owner.here and not owner.alive()
        except FileNotFoundError:
            dead = folder.name.startswith(prefix) and folder.is_dir() and now - folder.stat().st_mtime > OWNERLESS_SEC
        except (OSError, msgspec.DecodeError):
            continue
        if dead:
            RunDir(folder).remove()
            removed.append(folder)
    return removed
