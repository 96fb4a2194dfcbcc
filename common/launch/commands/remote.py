"""`simul status` and `simul down`: a look at a run, and a hand on its switch, from outside."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from pathlib import Path

import msgspec
import psutil
from rich.console import Console

from simul.common.config.run_directory import RunDir
from simul.common.launch.monitoring.panel import panel
from simul.common.launch.monitoring.snapshot import Snapshot
from simul.common.launch.supervisor.run_lock import living_owner
from simul.common.protocol.errors import ConfigError

DOWN_LIMIT_SEC = 180.0
CLOCK_GRAIN_SEC = 0.1  # a file system's clock may lag a little behind time.time()


def status(root: Path | None, *, as_json: bool) -> int:
    """Print the last figures. Exit code 0 while the run is active, 3 where it is not."""
    run_dir = choose_run(root, active_only=False)
    path = run_dir.root / "status.json"
    try:
        content = path.read_bytes()
        snapshot = msgspec.json.decode(content, type=Snapshot)
    except OSError:
        raise ConfigError(f"There is no run in {run_dir.root} (no status.json). Start one with `simul up`.") from None
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is not a status of this version of Simul: {error}.") from None
    owner = living_owner(run_dir)
    if as_json:
        active = {"active": owner is not None, "supervisor_pid": owner.pid if owner else None}
        sys.stdout.write(msgspec.json.encode({**active, **msgspec.to_builtins(snapshot)}).decode() + "\n")
    else:
        console = Console()
        console.print(panel(snapshot))
        if owner is None:
            age = max(0.0, time.time() - snapshot.time)
            console.print(f"This run is not active; these are its last figures, {age:,.0f} s old.")
    return 0 if owner is not None else 3


def down(root: Path | None) -> int:
    """Stop the supervisor of a run and wait for it. Exit code 0 when nothing runs any more."""
    run_dir = choose_run(root, active_only=True)
    owner = living_owner(run_dir)
    if owner is None:
        sys.stdout.write(f"No run is active in {run_dir.root}.\n")
        return 0
    asked_at = time.time()
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(owner.pid).send_signal(signal.SIGTERM)
    deadline = time.monotonic() + DOWN_LIMIT_SEC
    while owner.alive() and time.monotonic() < deadline:
        time.sleep(0.1)
    if owner.alive():
        sys.stderr.write(
            f"The run in {run_dir.root} (process {owner.pid}) is still saving after {DOWN_LIMIT_SEC:.0f} s. "
            "`simul down` once more stops it at once.\n"
        )
        return 1
    summary = run_dir.root / "summary.json"
    sys.stdout.write(f"Stopped. {summary} says what it did.\n" if _written_since(summary, asked_at) else "Stopped.\n")
    return 0


def _written_since(path: Path, moment: float) -> bool:
    """False where it is of an earlier run, or missing: a run that is stopped while it starts writes none."""
    try:
        return path.stat().st_mtime >= moment - CLOCK_GRAIN_SEC
    except OSError:
        return False


def choose_run(root: Path | None, *, active_only: bool) -> RunDir:
    """The run at `root`, else the one active run below runs/, else (unless `active_only`) the latest one."""
    if root is not None:
        return RunDir(root)
    found = [RunDir(path.parent) for path in sorted(Path("runs").glob("*/status.json"))]
    active = [run_dir for run_dir in found if living_owner(run_dir) is not None]
    if len(active) > 1:
        names = ", ".join(str(run_dir.root) for run_dir in active)
        raise ConfigError(f"Several runs are active: {names}. Choose one with --run-dir.")
    if active:
        return active[0]
    if found and not active_only:
        return max(found, key=lambda run_dir: (run_dir.root / "status.json").stat().st_mtime)
    raise ConfigError("No run is active below runs/. Name a run directory with --run-dir, or start one: `simul up`.")
