"""Which supervisor owns a run directory. supervisor.pid holds its pid, its start time and its machine.

A pid may be reused, and on another machine it means another process: there only a run's status.json tells whether its
supervisor lives, because it is written every second.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil

from simul.common.errors import ConfigError
from simul.common.role.machine import host_of, is_this_machine, this_machine
from simul.common.role.run_directory import RunDir
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.file_lock import hold_lock
from simul.common.runtime.private_files import open_regular, read_regular

SAME_START_SEC = 0.1
OWNER_FILE = "supervisor.pid"
LOCK_FILE = "supervisor.lock"  # among the sockets
OWNER_BYTES = 4096  # of such a file, at most
ELSEWHERE_SEC = 4.0  # a run on another machine whose status.json does not change for so long is not active


class ProcessIdentity(msgspec.Struct, frozen=True):
    """Pid, start time and machine: a later process with the same pid differs, and one elsewhere."""

    pid: int
    create_time: float
    machine: str = ""

    @property
    def here(self) -> bool:
        """Whether the pid is of this machine. Of any other nothing can be said or done here."""
        return is_this_machine(self.machine)

    def alive(self) -> bool:
        """True while this very process runs; False for one of another machine."""
        if not self.here:
            return False
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.create_time) < SAME_START_SEC
            return same and process.status() != psutil.STATUS_ZOMBIE
        except (psutil.Error, ValueError, OverflowError):  # a file of others may name any number
            return False

    def command_line(self) -> list[str]:
        """Of the process; [] where it cannot be read."""
        try:
            return psutil.Process(self.pid).cmdline()
        except (psutil.Error, ValueError, OverflowError):
            return []


def this_process() -> ProcessIdentity:
    """The calling process."""
    return ProcessIdentity(os.getpid(), psutil.Process().create_time(), this_machine())


def describe_start(run_dir: RunDir) -> str:
    """Of a run without a status.json: a sentence about the supervisor that is starting it; "" where there is none."""
    owner = read_owner(run_dir)
    if owner is None or (owner.here and not owner.alive()):
        return ""
    if owner.here:
        return f"The run in {run_dir.root} is starting (process {owner.pid}); it has no figures yet. Ask again soon."
    return (
        f"The run in {run_dir.root} has no figures yet: process {owner.pid} of the machine {host_of(owner.machine)} is "
        "starting it, or has died there before it wrote any."
    )


def read_owner(run_dir: RunDir) -> ProcessIdentity | None:
    """The supervisor that supervisor.pid names, living or not; None where it names none."""
    try:
        data = read_regular(run_dir.root / OWNER_FILE, OWNER_BYTES, links=False)
        return msgspec.json.decode(data, type=ProcessIdentity)
    except (OSError, *DECODE_ERRORS):
        return None


def living_owner(run_dir: RunDir) -> ProcessIdentity | None:
    """The supervisor that runs in `run_dir` now, if any. Takes up to ELSEWHERE_SEC for one of another machine."""
    owner = read_owner(run_dir)
    if owner is None:
        return None
    return owner if (owner.alive() if owner.here else _status_changes(run_dir)) else None


def is_own_supervisor(run_dir: RunDir, owner: ProcessIdentity) -> bool:
    """Whether this user's Simul wrote that `owner` runs in `run_dir`, and its command line is that of `simul up`.

    The owner file of a run directory of others may name any process of this user.
    """
    try:
        os.close(open_regular(run_dir.root / OWNER_FILE, own=True))
    except OSError:
        return False
    arguments = owner.command_line()[1:]  # the interpreter may lie in a folder of that name
    return "up" in arguments and any("simul" in argument for argument in arguments)


def _status_changes(run_dir: RunDir) -> bool:
    """Whether status.json is written. Clocks of two machines differ, so its time says nothing: it is watched."""
    file, deadline = run_dir.root / "status.json", time.monotonic() + ELSEWHERE_SEC

    def content() -> bytes:
        with contextlib.suppress(OSError):
            return read_regular(file)
        return b""

    before = content()
    while time.monotonic() < deadline:
        if content() != before:
            return True
        time.sleep(0.1)
    return False


def choose_run(root: Path | None, *, active_only: bool, instead: str = "") -> RunDir:
    """The run at `root`, else the one active run below runs/, else (unless `active_only`) the latest one.

    `instead`: what the caller takes in place of an active run, for the sentence about `root`.

    Raises ConfigError where there is none, or several are active; with `active_only` where none is active at `root`.
    """
    if root is not None:
        if active_only and living_owner(RunDir(root)) is None:
            raise ConfigError(f"No run is active in {RunDir(root).root}. Start it with `simul up`{instead}.")
        return RunDir(root)
    found = _runs_below()
    active = [run_dir for run_dir in found if living_owner(run_dir) is not None]
    if len(active) > 1:
        names = ", ".join(str(run_dir.root) for run_dir in active)
        raise ConfigError(f"Several runs are active: {names}. Choose one with --run-dir.")
    if active:
        return active[0]
    ended = [run_dir for run_dir in found if (run_dir.root / "status.json").exists()]
    if ended and not active_only:
        return max(ended, key=lambda run_dir: (run_dir.root / "status.json").stat().st_mtime)
    raise ConfigError("No run is active below runs/. Name a run directory with --run-dir, or start one: `simul up`.")


def active_runs() -> list[RunDir]:
    """All active runs below runs/, by name."""
    return [run_dir for run_dir in _runs_below() if living_owner(run_dir) is not None]


def _runs_below() -> list[RunDir]:
    """Those below runs/; one that starts may have no status yet."""
    folders = {path.parent for name in ("status.json", OWNER_FILE) for path in Path("runs").glob(f"*/{name}")}
    return [RunDir(folder) for folder in sorted(folders)]


def check_unowned(run_dir: RunDir) -> None:
    """Raises ConfigError where another supervisor lives in the run directory."""
    owner = living_owner(run_dir)
    if owner is not None and not owner.here:
        raise ConfigError(
            f"A run is already active in {run_dir.root}: process {owner.pid} of the machine {host_of(owner.machine)}. "
            "Stop it there with `simul down`, or choose another run directory with --run-dir."
        )
    if owner is not None:
        raise ConfigError(
            f"A run is already active in {run_dir.root} (process {owner.pid}). "
            f"Stop it with `simul down --run-dir {run_dir.root}`, or choose another run directory with --run-dir."
        )


@contextlib.contextmanager
def hold(run_dir: RunDir) -> Iterator[None]:
    """Hold the lock of the run directory, without which a start changes none of its files.

    Raises ConfigError where another start holds it; on Windows the port of the status socket tells them apart.
    """
    refusal = f"A run is already active in {run_dir.root}: it has just started. Choose another one with --run-dir."
    with contextlib.ExitStack() as held:
        with config_error_on_write_failure(run_dir):
            held.enter_context(hold_lock(run_dir.sockets / LOCK_FILE, refusal))
        yield


def claim(run_dir: RunDir) -> None:
    """Write the owner file. The caller holds the lock, so there is no race."""
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


def read_json(run_dir: RunDir, name: str) -> dict[str, Any]:
    """A small JSON file of the run directory; {} where it does not exist or is torn."""
    try:
        content = msgspec.json.decode(read_regular(run_dir.root / name))
    except (OSError, *DECODE_ERRORS):
        return {}
    return content if isinstance(content, dict) else {}


def write_atomically(run_dir: RunDir, name: str, content: Any) -> None:
    """Write a small JSON file so that a reader never sees half of it. Raises OSError (disk full)."""
    run_dir.write(name, msgspec.json.format(msgspec.json.encode(content), indent=2))
