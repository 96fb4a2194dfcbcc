"""Temporary folders that their process removes at its end; the next process removes those of killed ones."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil

from simul.common.role import run_lock
from simul.common.role.run_directory import MAX_PATH_BYTES, SOCKETS_KIND, SOCKETS_OWNER, RunDir
from simul.common.role.run_lock import ProcessIdentity
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import is_own_folder, read_regular
from simul.common.transport.endpoints import is_locked

ANY_KIND = "simul-"
NODE_KIND = "simul-node-"  # of agents: their processes may outlive them, and save
KEPT = "kept-"  # prefix of a run directory whose checkpoints the store may lack; no later process removes it
OWNER_BYTES = 4096
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
    """Remove this user's folders whose owners are dead. Nothing of another user is read, and no link is followed.

    So do those of another machine, or of another container that shares the folder for temporary files.

    A folder with an owner file may be of any kind, so that any command removes those of a killed one. A folder without
    is removed only if its name begins with `prefix`.

    Sockets are removed where no process has locked them, and their run directory is gone or no run is active in it.

    The run directory of an agent stays while a process has it, and is then kept if it has checkpoints.

    Args:
        now: seconds since the epoch.

    Returns those that were removed.
    """
    removed = []
    for folder in parent.glob(f"{ANY_KIND}*"):
        try:
            if not is_own_folder(folder):
                continue
            if folder.name.startswith(SOCKETS_KIND):
                if _are_leftover_sockets(folder, now):
                    shutil.rmtree(folder, ignore_errors=True)
                    removed.append(folder)
                continue
            owner = msgspec.json.decode(
                read_regular(folder / run_lock.OWNER_FILE, OWNER_BYTES, own=True), type=ProcessIdentity
            )
            dead = owner.here and not owner.alive()
        except FileNotFoundError:
            dead = folder.name.startswith(prefix) and _age_sec(folder, now) > OWNERLESS_SEC
        except (OSError, *DECODE_ERRORS):
            continue
        if not dead or (folder.name.startswith(NODE_KIND) and _in_use(folder)):
            continue
        if folder.name.startswith(NODE_KIND) and has_checkpoints(folder):
            keep_folder(folder)
        else:
            RunDir(folder).remove()
            removed.append(folder)
    return removed


def _are_leftover_sockets(folder: Path, now: float) -> bool:
    """Whether no run has its sockets in `folder`. Raises OSError."""
    if any(is_locked(lock) for lock in folder.glob("*.lock")):
        return False
    with contextlib.suppress(FileNotFoundError):  # of an older version
        root = os.fsdecode(read_regular(folder / SOCKETS_OWNER, MAX_PATH_BYTES, own=True))
        if not os.path.lexists(root):
            return True
    return _age_sec(folder, now) > OWNERLESS_SEC  # a younger one is of a run that starts, and locks them soon


def _age_sec(folder: Path, now: float) -> float:
    """Since its last change; 0 where its process has removed it meanwhile."""
    try:
        return now - folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def has_checkpoints(folder: Path) -> bool:
    """Whether a run directory has any."""
    try:
        return any(RunDir(folder).checkpoints.iterdir())
    except OSError:
        return False


def keep_folder(folder: Path) -> None:
    """Rename a run directory so that no later process takes it for a left-over one; where that fails it stays."""
    RunDir(folder).remove_sockets()
    with contextlib.suppress(OSError):
        folder.rename(folder.with_name(f"{KEPT}{folder.name}"))


def _in_use(folder: Path) -> bool:
    """Whether a process of this machine has it as an argument, such as `--run-dir`."""
    lines = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
    return any(Path(argument).name == folder.name for line in lines for argument in line)
