"""`simul policies list|load|unload`: which policies the servers of a running run serve."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from simul.launch.option_types import add_trust, local_checkpoint, path

if TYPE_CHECKING:
    from simul.common.role.run_directory import RunDir

LIST_TIMEOUT_SEC = 5.0


def add_policies(policies: argparse.ArgumentParser) -> None:
    """Add its actions, and their arguments, to a parser."""
    actions = policies.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="names, versions, sessions", description="Names, versions, sessions.")
    load = actions.add_parser(
        "load",
        help="serve a checkpoint, frozen, under a name of its own",
        description="Serve a checkpoint, frozen, under a name of its own.",
    )
    load.add_argument("name", metavar="NAME")
    load.add_argument(
        "checkpoint", type=local_checkpoint, metavar="D", help="a checkpoint, a run directory, or zoo:NAME"
    )
    add_trust(load)
    unload = actions.add_parser(
        "unload", help="serve a loaded policy no longer", description="Serve a loaded policy no longer."
    )
    unload.add_argument("name", metavar="NAME")
    unload.add_argument("--drain", action="store_true", help="let the sessions that are bound to it play to their end")
    for action in (listing, load, unload):
        action.add_argument("--run-dir", type=path, help="default: the run that is active below runs/")
        action.set_defaults(run=_policies)


def _policies(options: argparse.Namespace) -> int:
    """Do one action at every server, then print what each serves. Exit code 0.

    Raises ConfigError, InferenceError. What one of several servers refuses, the others do all the same.
    """
    from rich.table import Table

    from simul.common.client.control import ANSWER_SEC, ControlClient
    from simul.common.errors import ConfigError, InferenceError
    from simul.common.role.run_lock import choose_run
    from simul.common.runtime.terminal_console import SafeConsole

    run_dir = choose_run(options.run_dir, active_only=True)
    patience_sec = LIST_TIMEOUT_SEC if options.action == "list" else ANSWER_SEC
    folder = _newest_folder(options.checkpoint) if options.action == "load" else None  # the same one for all
    console, count = SafeConsole(), _servers_of(run_dir)
    several = ["server"] * (count > 1)
    refused: list[str] = []
    table = Table(*several, "policy", "version", "sessions", "from", "new sessions")
    for server in range(count):
        try:
            with ControlClient(run_dir, patience_sec, server=server) as control:
                if options.action == "list":
                    answer = control.policies()
                elif folder is not None:
                    answer = control.load(options.name, folder, trust=options.trust)
                else:
                    answer = control.unload(options.name, drain=options.drain)
        except (ConfigError, InferenceError) as error:
            if not several:
                raise
            refused.append(f"inference server {server}: {error}")
            continue
        if answer.text:
            console.print(f"inference server {server}: {answer.text}" if several else answer.text, highlight=False)
        for policy in answer.policies:
            version, sessions = str(policy.policy_version), str(policy.sessions)
            new = "yes" if policy.open else "no, draining"
            table.add_row(*[str(server)] * len(several), policy.name, version, sessions, policy.source, new)
    if table.row_count:
        console.print(table)
    if refused:
        raise ConfigError(f"{count - len(refused)} of {count} servers have done it; {'; '.join(refused)}")
    return 0


def _servers_of(run_dir: RunDir) -> int:
    """How many inference servers the run has; 1 where its configuration cannot be read."""
    from simul.common.errors import ConfigError

    try:
        return run_dir.read_config().cluster.servers.count
    except ConfigError:
        return 1


def _newest_folder(given: Path) -> Path:
    """A checkpoint as it is given, or the newest of a run directory; the server verifies it. Raises ConfigError."""
    from simul.common.checkpoints.meta import META_FILE, checkpoint_folders
    from simul.common.errors import ConfigError

    if (given / META_FILE).exists() or not (given / "checkpoints").is_dir():
        return given
    folders = checkpoint_folders(given / "checkpoints")
    newest = next((folder for folder in folders if (folder / META_FILE).exists()), None)
    if newest is None:
        raise ConfigError(f"The run directory {given} has no checkpoint yet.")
    return newest
