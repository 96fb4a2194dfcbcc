"""Which supervisor owns a run directory. supervisor.pid holds its pid and start time: a pid may be reused."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil

from simul.common.config.run_directory import RunDir
from simul.common.protocol.errors import ConfigError

SAME_START_SEC = 0.1
OWNER_FILE = "supervisor.pid"


class ProcessIdentity(msgspec.Struct, frozen=True):
    """Pid and start time: a later process with the same pid differs."""

    pid: int
    create_time: float

    def alive(self) -> bool:
        """True while this very process runs."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.create_time) < SAME_START_SEC
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


def this_process() -> ProcessIdentity:
    """The calling process."""
    return ProcessIdentity(os.getpid(), psutil.Process().create_time())


def living_owner(run_dir: RunDir) -> ProcessIdentity | None:
    """The supervisor that runs in `run_dir` now, if any."""
    try:
        owner = msgspec.json.decode((run_dir.root / OWNER_FILE).read_bytes(), type=ProcessIdentity)
    except (OSError, msgspec.DecodeError):
        return None
    return owner if owner.alive() else None


def choose_run(root: Path | None, *, active_only: bool, how: str = "--run-dir") -> RunDir:
    """The run at `root`, else the one active run below runs/, else (unless `active_only`) the latest one.

    Raises ConfigError where there is none, or several are active. `how`: how the command takes a run directory.
    """
    if root is not None:
        return RunDir(root)
    found = [RunDir(path.parent) for path in sorted(Path("runs").glob("*/status.json"))]
    active = [run_dir for run_dir in found if living_owner(run_dir) is not None]
    if len(active) > 1:
        names = ", ".join(str(run_dir.root) for run_dir in active)
        raise ConfigError(f"Several runs are active: {names}. Choose one with {how}.")
    if active:
        return active[0]
    if found and not active_only:
        return max(found, key=lambda run_dir: (run_dir.root / "status.json").stat().st_mtime)
    raise ConfigError(f"No run is active below runs/. Name a run directory with {how}, or start one: `simul up`.")


def check_unowned(run_dir: RunDir) -> None:
    """Raises ConfigError where another supervisor lives in the run directory."""
    owner = living_owner(run_dir)
    if owner is not None:
        raise ConfigError(
            f"A run is already active in {run_dir.root} (process {owner.pid}). "
            f"Stop it with `simul down --run-dir {run_dir.root}`, or choose another run directory with --run-dir."
        )


def claim(run_dir: RunDir) -> None:
    """Write the owner file. The caller holds the lock of the status socket, so there is no race."""
    with config_error_on_write_failure(run_dir):
        write_atomically(run_dir, OWNER_FILE, this_process())


def restore_claim(run_dir: RunDir) -> None:
    """Write the owner file again if it was removed: without it `simul down` does not find the run."""
    if not (run_dir.root / OWNER_FILE).exists():
        with contextlib.suppress(OSError):
            write_atomically(run_dir, OWNER_FILE, this_process())


@contextlib.contextmanager
def config_error_on_write_failure(run_dir: RunDir) -> Iterator[None]:
    """Turns the OSError of a full or read-only disk into a ConfigError."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"The run directory {run_dir.root} cannot be written: {error.strerror}. "
            "Make room, or choose another place with --run-dir."
        ) from None


def release(run_dir: RunDir) -> None:
    """Remove the owner file."""
    with contextlib.suppress(OSError):
        (run_dir.root / OWNER_FILE).unlink()


def end_leftover_roles(run_dir: RunDir, patience_sec: float = 15.0) -> list[int]:
    """Wait for the roles of a killed supervisor, which exit by themselves, then kill them. Returns their pids."""
    status = read_json(run_dir, "status.json")
    listed = [ProcessIdentity(p["pid"], p["create_time"]) for p in status.get("processes", ()) if p.get("create_time")]
    left = [owner for owner in listed if owner.alive()]
    deadline = time.monotonic() + patience_sec
    while any(owner.alive() for owner in left) and time.monotonic() < deadline:
        time.sleep(0.1)
    for owner in left:
        if owner.alive():
            with contextlib.suppress(psutil.Error):
                psutil.Process(owner.pid).kill()
    return [owner.pid for owner in left]


def read_json(run_dir: RunDir, name: str) -> dict[str, Any]:
    """A small JSON file of the run directory; {} where it does not exist or is torn."""
    try:
        content = msgspec.json.decode((run_dir.root / name).read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return content if isinstance(content, dict) else {}


def write_atomically(run_dir: RunDir, name: str, content: Any) -> None:
    """Write a small JSON file so that a reader never sees half of it. Raises OSError (disk full)."""
    run_dir.write(name, msgspec.json.format(msgspec.json.encode(content), indent=2))
