"""The folder that an evaluation runs in. It goes with the evaluation; what a killed one left goes with the next."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from common.launch import ownership
from common.launch.ownership import Owner
from common.rundir import RunDir

PREFIX = "simul-eval-"
OWNERLESS_SEC = 600.0  # younger ones without an owner are about to get one


@contextmanager
def eval_folder() -> Iterator[RunDir]:
    """A run directory for the time of the block."""
    remove_leftovers(Path(tempfile.gettempdir()), time.time())
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as root:
        run_dir = RunDir(root)
        ownership.claim(run_dir)
        try:
            yield run_dir
        finally:
            shutil.rmtree(run_dir.sockets, ignore_errors=True)


def remove_leftovers(parent: Path, now: float) -> list[Path]:
    """Remove the folders of evaluations that are dead; those that cannot be removed (another user's) stay.

    Args:
        now: seconds since the epoch.
    """
    removed = []
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            owner = msgspec.json.decode((folder / ownership.OWNER_FILE).read_bytes(), type=Owner)
            dead = not owner.alive()
        except FileNotFoundError:
            dead = folder.is_dir() and now - folder.stat().st_mtime > OWNERLESS_SEC
        except (OSError, msgspec.DecodeError):
            continue
        if dead:
            shutil.rmtree(RunDir(folder).sockets, ignore_errors=True)
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder)
    return removed
