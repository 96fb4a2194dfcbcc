"""`simul up --from`: a new run begins with the weights of a checkpoint of another one. No torch in the CLI."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any

import msgspec

from simul.common.config.run_directory import RunDir
from simul.common.launch.evaluation.checkpoint import WEIGHTS_FILE, newest_checkpoint
from simul.common.protocol.errors import ConfigError
from simul.common.protocol.specs import GameSpec

OPTIMIZER_FILE = "optimizer.safetensors"
ASIDE = ".writing-"  # what the learner clears away of a life that was killed while it wrote


class _Named(msgspec.Struct):
    name: str


class _Facts(msgspec.Struct):
    """meta.json as the learner writes it, as far as it is read here."""

    version: Annotated[int, msgspec.Meta(ge=0, lt=10**9)]
    spec_fingerprint: str
    spec: _Named
    network: _Named
    files: dict[str, str]


class Origin:
    """A checkpoint, or the newest whole one of a run directory, that a run in `run_dir` begins with."""

    def __init__(self, path: Path, run_dir: RunDir) -> None:
        self._path = Path(os.path.realpath(path))
        self._run_dir = run_dir
        self._brought: Path | None = None

    def bring(self, spec: GameSpec, network: str) -> str:
        """Copy the checkpoint into the run and return a sentence about it. `network`: name of the configured one.

        Weights, Adam's moments and the version stay; decisions count from 0, so that schedules begin anew. A run that
        began with this `--from` goes on where it was: the command that started it also resumes it.

        Raises:
            ConfigError: there is none, it is damaged, of another encoder or network, or the run has others already.
            OSError: it cannot be written.
        """
        if self._path.exists() and self._path.is_relative_to(os.path.realpath(self._run_dir.root)):
            raise ConfigError(
                f"--from {self._path} is the run's own: leave --from out and it goes on from its newest checkpoint, or "
                "choose another run directory with --run-dir."
            )
        there = sorted(self._run_dir.checkpoints.glob("[0-9]" * 9))
        if there and self._run_dir.read_origin() == str(self._path):
            return f"the run began with {self._path} before; it goes on from its checkpoint {there[-1].name}"
        if there:
            raise ConfigError(
                f"The run directory {self._run_dir.root} has checkpoints of its own, the newest is {there[-1].name}: "
                "leave --from out and it goes on from there, or choose another run directory with --run-dir."
            )
        notes: list[str] = []
        origin = newest_checkpoint(self._path, notes.append)
        meta = _read(origin)
        facts = _facts(meta, origin)
        if facts.spec_fingerprint != spec.fingerprint():
            raise ConfigError(
                f"The checkpoint {origin} of --from is of another game or encoder: it has the spec fingerprint "
                f"{facts.spec_fingerprint} ({facts.spec.name}), this configuration {spec.fingerprint()} "
                f"({spec.name}). Nothing was changed."
            )
        if facts.network.name != network:
            raise ConfigError(
                f"The checkpoint {origin} of --from has the network {facts.network.name}, this configuration "
                f"{network}: set network.name to {facts.network.name}. Nothing was changed."
            )
        target = self._run_dir.checkpoints / f"{facts.version:09d}"
        _copy(origin, target, {**meta, "decisions": 0, "updates": 0, "milestone": True})
        self._brought = target
        self._run_dir.write_origin(str(self._path))
        moments = "" if OPTIMIZER_FILE in facts.files else ", which has no moments of Adam: they begin at 0"
        return " ".join([*notes, f"the run begins with {origin}{moments}"])

    def take_back(self) -> None:
        """Remove what `bring` copied: the run did not come to life."""
        if self._brought is not None:
            shutil.rmtree(self._brought, ignore_errors=True)
            with contextlib.suppress(OSError):
                self._run_dir.write_origin("")


def _facts(meta: Any, folder: Path) -> _Facts:
    """What of a meta.json is read here. Raises ConfigError."""
    try:
        return msgspec.convert(meta, _Facts)
    except msgspec.ValidationError as error:
        raise ConfigError(f"The checkpoint {folder} is damaged: meta.json: {error}.") from None


def _read(folder: Path) -> Any:
    return msgspec.json.decode((folder / "meta.json").read_bytes())


def _copy(origin: Path, target: Path, meta: dict[str, Any]) -> None:
    """Whole or not at all: written aside, then renamed. Raises ConfigError, OSError."""
    files = {name: _verified(origin, name, meta) for name in (WEIGHTS_FILE, OPTIMIZER_FILE) if name in meta["files"]}
    aside = Path(tempfile.mkdtemp(prefix=ASIDE, dir=target.parent))
    try:
        for name, data in files.items():
            (aside / name).write_bytes(data)
        (aside / "meta.json").write_bytes(msgspec.json.format(msgspec.json.encode(meta)))
        aside.rename(target)
    except OSError:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def _verified(origin: Path, name: str, meta: dict[str, Any]) -> bytes:
    """A file of a checkpoint. Raises ConfigError where it cannot be read or has not the hash that was written."""
    try:
        data = (origin / name).read_bytes()
    except OSError as error:
        raise ConfigError(f"The checkpoint {origin} of --from cannot be read: {name}: {error.strerror}.") from None
    if hashlib.sha256(data).hexdigest() != meta["files"][name]:
        raise ConfigError(f"The checkpoint {origin} of --from is damaged: {name} does not have the hash of meta.json.")
    return data
