"""A store in memory whose operations a test watches and disturbs, and checkpoints to put into it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import fsspec
from fsspec.implementations.memory import MemoryFileSystem
from msgspec import structs

from simul.common.checkpoints.meta import OPTIMIZER_FILE, WEIGHTS_FILE
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.store.layout import Owner, whole
from simul.common.store.remote import Store
from simul.learner.checkpoints.checkpoint_store import RunFacts, write_folder
from simul.learner.checkpoints.store_mirror import StoreMirror
from tests.support.checkpoints import SMALL

SPEC = GameSpec("cartpole", 4, 2)
EVERY = 1000  # decisions between milestones


def nothing(operation: str, path: str) -> None:
    """Leaves an operation alone."""


class ScriptedFileSystem(MemoryFileSystem):
    """`before(operation, path)` is called before each write, read, list and remove; it may raise or wait.

    A write that `tear` is true for stops in the middle, as when a process is killed or a connection breaks.
    """

    protocol = "scripted"
    store: dict = {}
    pseudo_dirs = [""]
    before: Callable[[str, str], None] = staticmethod(nothing)
    torn: Callable[[str], bool] = staticmethod(lambda path: False)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.replace("scripted://", "memory://"))

    def find(self, path, **options):
        self.before("list", path)
        return super().find(path, **options)

    def cat_file(self, path, **options):
        self.before("read", path)
        return super().cat_file(path, **options)

    def pipe_file(self, path, value, **options):
        self.before("write", path)
        return super().pipe_file(path, self._maybe_torn(path, value), **options)

    def put_file(self, lpath, rpath, **options):
        self.before("write", rpath)
        super().pipe_file(rpath, self._maybe_torn(rpath, Path(lpath).read_bytes()))
        self.before("written", rpath)

    def rm_file(self, path):
        self.before("remove", path)
        super().rm_file(path)

    def rm(self, path, **options):
        self.before("remove", path)
        super().rm(path, **options)

    def _maybe_torn(self, path: str, data: bytes) -> bytes:
        return data[: len(data) // 2] if self.torn(path) else data


fsspec.register_implementation("scripted", ScriptedFileSystem, clobber=True)


def new_url(scheme: str = "memory") -> str:
    """An empty store that no other test has."""
    return f"{scheme}://{uuid.uuid4().hex}/run"


def new_run(folder: Path) -> RunDir:
    """An empty run directory."""
    run_dir = RunDir(folder)
    run_dir.create()
    return run_dir


def save_checkpoint(
    run_dir: RunDir, version: int, decisions: int = 0, *, kind: str = "", spec: GameSpec = SPEC, size: int = 100
) -> Path:
    """A checkpoint as the learner writes it, with `size` bytes of weights. `kind`: "", or "past"."""
    files = {WEIGHTS_FILE: b"%09d" % version * (size // 9), OPTIMIZER_FILE: b"moments %d" % version}
    if kind == "past":
        del files[OPTIMIZER_FILE]
    meta = structs.replace(RunFacts(spec, SMALL, "0" * 16, 1).meta(version, decisions, 1, files, False))
    path = run_dir.checkpoints / kind / f"{version:09d}"
    write_folder(path, meta, files)
    return path


def make_mirror(url: str, run_dir: RunDir, run_id: int = 1) -> StoreMirror:
    """Not started."""
    return StoreMirror(url, run_dir, Owner(run_id, "2026-01-01T00:00:00+00:00", "here"), EVERY)


def stored(store: Store, kind: str = "checkpoints") -> list[int]:
    """Versions of the whole folders, the newest first."""
    return [entry.version for entry in whole(store.entries(), kind)]
