"""Folders of checkpoints: one that appears whole or not at all, one that outlives its origin, and the best one."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from simul.common.config.run_signature import trust_in
from simul.common.config.trust import Trust
from simul.common.runtime.private_files import replace_file

ASIDE = ".writing-"  # prefix of unfinished folders
BEST = "best"  # checkpoints/best
NEW_BEST = ".best"  # the link that becomes `best`
RESULT_FILE = "evaluation.json"  # in checkpoints/best
PAST = "past"  # checkpoints/past, with the league's past selves
NOT_FOR_OTHERS_TO_WRITE = 0o755


def run_root(checkpoint: Path) -> Path:
    """The run directory that a checkpoint or a past self lies in: ROOT/checkpoints/N or ROOT/checkpoints/past/N.

    One that lies elsewhere, such as an entry of a zoo, belongs to no run: the folder itself, whatever is above it.
    """
    checkpoint = checkpoint.absolute()
    above = checkpoint.parent.parent if checkpoint.parent.name == PAST else checkpoint.parent
    return above.parent if above.name == "checkpoints" else checkpoint


def checkpoint_trust(folder: Path, trust: Trust) -> Trust:
    """`trust_in` the run directory that the checkpoint `folder` lies in."""
    return trust_in(run_root(folder), trust)


def spread(versions: Collection[int], count: int) -> list[int]:
    """The newest version, and older ones evenly spread over the run down to the oldest; at most `count`."""
    ordered = sorted(versions)
    if len(ordered) <= count:
        return ordered
    if count <= 1:
        return ordered[len(ordered) - count :]
    last = len(ordered) - 1
    return [ordered[round(i * last / (count - 1))] for i in range(count)]


@contextmanager
def new_folder(path: Path, *, only_writer: bool = False) -> Iterator[Path]:
    """The block fills a folder aside, which is then synced and renamed to `path`; there it replaces an older one.

    After an exception, OSError of a full disk included, `path` is as before and nothing is left behind. What a killed
    process has left is removed by the next call for the same `path`; a folder that it was replacing comes back.

    `only_writer`: no other process writes into the parent folder, so unfinished folders of any name there are removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    own = f"{ASIDE}{path.name}-"
    before = path.with_name(f"{own}before")
    unfinished = re.compile(re.escape(own) + r"(before|\w{8})")  # of mkdtemp; another folder may be called `path`-2
    if before.exists() and not path.exists():
        before.rename(path)
    for found in list(path.parent.iterdir()):
        if found.name.startswith(ASIDE) if only_writer else unfinished.fullmatch(found.name):
            shutil.rmtree(found, ignore_errors=True)
    aside = Path(tempfile.mkdtemp(prefix=own, dir=path.parent))
    try:
        yield aside
        for file in aside.iterdir():
            _sync(file)
        aside.chmod(path.parent.stat().st_mode & NOT_FOR_OTHERS_TO_WRITE)  # readable as the folder it is in
        _sync(aside)
        if path.exists():
            path.rename(before)
        aside.rename(path)
        _sync(path.parent)
    except Exception:
        shutil.rmtree(aside, ignore_errors=True)
        if before.exists() and not path.exists():
            before.rename(path)
        raise
    shutil.rmtree(before, ignore_errors=True)


def link_folder(origin: Path, target: Path) -> None:
    """The files of `origin` again in the new folder `target`, which stays when `origin` is removed.

    Without a copy where the file system has hard links. Raises OSError.
    """
    target.mkdir()
    for file in origin.iterdir():
        try:
            os.link(file, target / file.name)
        except OSError:
            shutil.copyfile(file, target / file.name)


def replace_best(checkpoint: Path, result: bytes) -> None:
    """Make `checkpoint` checkpoints/best, with `result` in evaluation.json. A reader finds the old one or the new one.

    The name of `checkpoint` ends in the nine digits of its version.

    `best` is a link to a folder beside it, exchanged by a rename; on Windows, where links need a privilege, it is the
    folder itself and absent for a moment. Raises OSError.
    """
    folder = checkpoint.parent
    link, name = folder / BEST, checkpoint.name[-9:]
    kept = folder / f"{BEST}-{name}"
    if link.is_symlink() and link.readlink().name == kept.name:  # the same version again
        kept = folder / f"{BEST}-again-{name}"
    before = [path for path in folder.glob(f"{BEST}-*") if path != kept]
    shutil.rmtree(kept, ignore_errors=True)
    replace_file(checkpoint / RESULT_FILE, result)
    checkpoint.rename(kept)
    if sys.platform == "win32":
        shutil.rmtree(link, ignore_errors=True)
        kept.rename(link)
        return
    aside = folder / NEW_BEST  # also where a killed process has left one
    aside.unlink(missing_ok=True)
    aside.symlink_to(kept.name)
    aside.replace(link)
    for old in before:
        shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    windows = os.name == "nt"
    if windows and path.is_dir():  # it cannot open folders
        return
    descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
