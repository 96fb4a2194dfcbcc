"""`simul status` and `simul down`: read a run's figures, or stop it, from another terminal."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from simul.common.runtime.terminal_text import print_text
from simul.launch.option_types import add_run, named_run

if TYPE_CHECKING:
    from simul.common.role.run_directory import RunDir
    from simul.launch.ratings.league_file import LeagueFigures

DOWN_LIMIT_SEC = 300.0  # longer than a supervisor waits for its roles, except for a learner that is saving


def add_status(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `simul status` to a parser."""
    add_run(parser, "the run that is active below runs/, else the latest")
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    parser.set_defaults(run=lambda options: status(named_run(options), as_json=options.json))


def add_down(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `simul down` to a parser."""
    add_run(parser, "the run that is active below runs/")
    parser.set_defaults(run=lambda options: down(named_run(options)))


def status(root: Path | None, *, as_json: bool) -> int:
    """Print the last figures. Exit code 0 while the run is active, 3 where it is not. Raises ConfigError."""
    import msgspec

    from simul.common.errors import ConfigError
    from simul.common.role.run_lock import choose_run, describe_start, living_owner
    from simul.common.runtime.decode_errors import DECODE_ERRORS
    from simul.common.runtime.terminal_console import SafeConsole
    from simul.launch.monitoring.curves.league_curves import with_league
    from simul.launch.monitoring.snapshot import STATUS, read_status
    from simul.launch.monitoring.view.league_table import league_table
    from simul.launch.monitoring.view.panel import run_panel

    run_dir = choose_run(root, active_only=False)
    file = run_dir.root / STATUS
    try:
        snapshot = read_status(run_dir)
    except FileNotFoundError:
        missing = f"There is no run in {run_dir.root} (no status.json). Start one with `simul up`."
        raise ConfigError(describe_start(run_dir) or missing) from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}.") from None
    except DECODE_ERRORS as error:
        raise ConfigError(
            f"{file} is not a status of this version of Simul: {error}. Use `simul status` of the checkout that made "
            "the run, or name another run."
        ) from None
    owner = living_owner(run_dir)
    league, fault = _read_league(run_dir)
    snapshot = with_league(snapshot, league)
    if as_json:
        active = {
            "active": owner is not None, "supervisor_pid": owner.pid if owner else None,
            "league": league.best_first if league else [], "payoffs": league.payoffs if league else [],
        }  # fmt: skip
        print_text(msgspec.json.encode({**active, **msgspec.to_builtins(snapshot)}).decode())
    else:
        console = SafeConsole()
        console.print(run_panel(snapshot))
        if league:
            console.print(league_table(league, console.width))
        if fault:
            console.print(fault)
        if owner is None:
            age = max(0.0, time.time() - snapshot.time)
            console.print(f"This run is not active; these are its last figures, {age:,.0f} s old.")
    return 0 if owner is not None else 3


def _read_league(run_dir: RunDir) -> tuple[LeagueFigures | None, str]:
    """What `simul league` has kept; and why that cannot be read, where it cannot."""
    from simul.common.errors import ConfigError
    from simul.launch.ratings.league_file import read_league

    try:
        return read_league(run_dir.root), ""
    except ConfigError as error:
        return None, str(error)


def down(root: Path | None) -> int:
    """Stop the supervisor of a run and wait for it. Exit code 0: stopped, or not active; 1: still stopping.

    Raises ConfigError: it runs on another machine, or `choose_run` finds none.
    """
    import contextlib
    import signal

    import psutil

    from simul.common.errors import ConfigError
    from simul.common.role.machine import host_of
    from simul.common.role.run_lock import choose_run, is_own_supervisor, living_owner
    from simul.common.runtime.private_files import written_since
    from simul.launch.monitoring.view.output import complain

    run_dir = choose_run(root, active_only=root is None)
    owner = living_owner(run_dir)
    if owner is None:
        print_text(f"No run is active in {run_dir.root}.")
        return 0
    if not owner.here:
        raise ConfigError(
            f"The run in {run_dir.root} is process {owner.pid} of the machine {host_of(owner.machine)}. "
            "Stop it there with `simul down`."
        )
    if not is_own_supervisor(run_dir, owner):
        raise ConfigError(
            f"{run_dir.root}/supervisor.pid names process {owner.pid}, but the file is another user's, or the process "
            "is none of Simul's. Nothing was stopped."
        )
    requested_at = time.time()
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(owner.pid).send_signal(signal.SIGTERM)
    deadline = time.monotonic() + DOWN_LIMIT_SEC
    while owner.alive() and time.monotonic() < deadline:
        time.sleep(0.1)
    if owner.alive():
        complain(
            f"The run in {run_dir.root} (process {owner.pid}) is still saving after {DOWN_LIMIT_SEC:.0f} s. "
            "`simul down` once more stops it at once.\n"
        )
        return 1
    summary = run_dir.root / "summary.json"
    print_text(f"Stopped. Summary: {summary}" if written_since(summary, requested_at) else "Stopped.")
    return 0
