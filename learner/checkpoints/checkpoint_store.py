"""Checkpoints on disk: written aside, synced, renamed; verified by hash when read.

    checkpoints/000000420/   weights.safetensors  optimizer.safetensors  meta.json
    checkpoints/past/...     the league's past selves, without the optimizer

The newest two whole ones and every milestone are kept. A damaged one is renamed to `damaged-000000420`, with a note.
A checkpoint counts as whole when it was written or verified by hash and none of its files has changed since.
"""

from __future__ import annotations

import importlib.metadata
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from safetensors.torch import save

from simul.common.checkpoints.folders import new_folder
from simul.common.checkpoints.meta import (
    META_FILE,
    OPTIMIZER_FILE,
    WEIGHTS_FILE,
    CheckpointMeta,
    check_spec,
    checkpoint_folders,
    is_milestone,
    read_meta,
    read_verified,
)
from simul.common.config.schema import NetworkConfig
from simul.common.errors import CheckpointError
from simul.common.nets.io import fingerprint
from simul.common.protocol.specs import GameSpec

KEEP_NEWEST = 2
_DAMAGED = "damaged-"
_PACKAGES = ("torch", "numpy", "safetensors", "msgspec", "pyzmq")


@dataclass(frozen=True)
class RunFacts:
    """What is the same in every checkpoint of a run."""

    spec: GameSpec
    network: NetworkConfig
    config_fingerprint: str
    seed: int
    state_size: int | None = None

    def meta(
        self,
        version: int,
        decisions: int,
        updates: int,
        files: Mapping[str, bytes],
        milestone: bool,
        horizon: int = 0,
    ) -> CheckpointMeta:
        """meta.json of a checkpoint that holds `files`."""
        return CheckpointMeta(
            version=version,
            decisions=decisions,
            updates=updates,
            spec_fingerprint=self.spec.fingerprint(),
            spec=self.spec,
            network=self.network,
            config_fingerprint=self.config_fingerprint,
            seed=self.seed,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            packages={name: importlib.metadata.version(name) for name in _PACKAGES},
            files={name: fingerprint(data) for name, data in files.items()},
            milestone=milestone,
            horizon=horizon,
            state_size=self.state_size,
        )


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint."""

    meta: CheckpointMeta
    weights: bytes
    optimizer: bytes


class CheckpointStore:
    """The checkpoints of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._whole: dict[Path, _Stamp] = {}  # as of their writing or verification
        self._notes: list[str] = []

    def drain_notes(self) -> list[str]:
        """Sentences since the last call: what is damaged, and where it is now."""
        notes, self._notes = self._notes, []
        return notes

    def save(self, meta: CheckpointMeta, files: Mapping[str, bytes]) -> Path:
        """Write one checkpoint, then remove old ones.

        Raises:
            OSError: disk full or no permission; existing checkpoints are untouched.
        """
        path = self.path(meta.version)
        write_folder(path, meta, files)
        self._whole[path] = _stamp(path)
        self._remove_old()
        return path

    def latest(self, spec: GameSpec) -> Checkpoint | None:
        """The newest whole checkpoint; None where there is none at all. Newer damaged ones are set aside.

        Raises:
            CheckpointError: none is whole, or the newest whole one belongs to another encoder.
        """
        damaged: list[tuple[Path, str]] = []
        for path in checkpoint_folders(self._folder):
            stamp = _stamp(path)
            try:
                meta = read_meta(path)
                weights = read_verified(path, meta, WEIGHTS_FILE)
                optimizer = read_verified(path, meta, OPTIMIZER_FILE) if OPTIMIZER_FILE in meta.files else save({})
            except CheckpointError as error:
                damaged.append((path, str(error)))
                continue
            check_spec(path, meta, spec, "Choose another run directory with --run-dir.")
            self._whole[path] = stamp
            for damaged_path, why in damaged:
                self._set_aside(damaged_path, f"{why} Falling back to the one before.")
            self._note_impossible()
            return Checkpoint(meta, weights, optimizer)
        if damaged:
            raise CheckpointError(
                f"No checkpoint in {self._folder} can be used. {damaged[0][1]} "
                "Choose another run directory with --run-dir, or move this folder away to start afresh."
            )
        self._note_impossible()
        return None

    def path(self, version: int) -> Path:
        """Folder of a version."""
        return self._folder / f"{version:09d}"

    def versions(self) -> list[int]:
        """Versions on disk, whole or not, oldest first."""
        return [int(path.name) for path in reversed(checkpoint_folders(self._folder))]

    def _remove_old(self) -> None:
        """Keep the newest whole ones and the milestones. Unchanged files are not read again."""
        whole = 0
        for path in checkpoint_folders(self._folder):
            if whole < KEEP_NEWEST:
                whole += self._is_whole(path)
            elif not is_milestone(path):
                shutil.rmtree(path, ignore_errors=True)
        self._whole = {path: stamp for path, stamp in self._whole.items() if path.exists()}

    def _is_whole(self, path: Path) -> bool:
        """False for a damaged one, which is set aside: it neither counts nor is loaded."""
        stamp = _stamp(path)
        if self._whole.get(path) == stamp:
            return True
        try:
            meta = read_meta(path)
            for name in meta.files:
                read_verified(path, meta, name)
        except CheckpointError as error:
            self._set_aside(path, f"{error} It does not count among the newest {KEEP_NEWEST}, which are kept.")
            return False
        self._whole[path] = stamp
        return True

    def _set_aside(self, path: Path, sentence: str) -> None:
        aside = path.with_name(f"{_DAMAGED}{path.name}")
        try:
            shutil.rmtree(aside, ignore_errors=True)  # an earlier damaged one of this version
            path.rename(aside)
        except OSError as error:
            self._notes.append(f"{sentence} It could not be set aside: {error.strerror}.")
        else:
            self._notes.append(f"{sentence} It is now {aside.name}.")

    def _note_impossible(self) -> None:
        """Folders of versions with ten digits and more: no learner reaches them, and none loads them."""
        for path in sorted(self._folder.glob("[0-9]" * 10 + "*")):
            if path.name.isdigit() and path.is_dir():
                self._notes.append(
                    f"The checkpoint {path} is not used: no run comes to a version of more than nine digits."
                )


_Stamp = tuple[tuple[str, int, int, int], ...]  # of each file: name, bytes, time of change in ns, inode


def _stamp(path: Path) -> _Stamp:
    """Changes with every file of a checkpoint; empty where the folder cannot be read."""
    try:
        found = [(file.name, file.stat()) for file in sorted(path.iterdir())]
    except OSError:
        return ()
    return tuple((name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in found)


def write_folder(path: Path, meta: CheckpointMeta, files: Mapping[str, bytes]) -> None:
    """Write a checkpoint's folder aside, sync it, rename it. Raises OSError and then leaves nothing behind."""
    with new_folder(path, only_writer=True) as aside:
        for name, data in (*files.items(), (META_FILE, msgspec.json.format(msgspec.json.encode(meta)))):
            (aside / name).write_bytes(data)
