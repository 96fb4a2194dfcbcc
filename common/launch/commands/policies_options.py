"""The command line of `simul policies`."""

from __future__ import annotations

import argparse

from simul.common.config.option_types import path


def add_policies(policies: argparse.ArgumentParser) -> None:
    """Add its actions, and their arguments, to a parser."""
    actions = policies.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="names, versions, sessions", description="Names, versions, sessions.")
    load = actions.add_parser(
        "load",
        help="serve a checkpoint, frozen, under a name of its own",
        description="Serve a checkpoint, frozen, under a name of its own.",
    )
    load.add_argument("name", metavar="NAME")
    load.add_argument("checkpoint", type=path, metavar="D", help="a checkpoint or a run directory")
    unload = actions.add_parser(
        "unload", help="serve a loaded policy no longer", description="Serve a loaded policy no longer."
    )
    unload.add_argument("name", metavar="NAME")
    unload.add_argument("--drain", action="store_true", help="let the sessions that are bound to it play to their end")
    for action, run in ((listing, _list_policies), (load, _load_policy), (unload, _unload_policy)):
        action.add_argument("--run-dir", type=path, help="default: the run that is active below runs/")
        action.set_defaults(run=run)


def _list_policies(options: argparse.Namespace) -> int:
    from simul.common.launch.commands.policies import list_policies

    return list_policies(options.run_dir)


def _load_policy(options: argparse.Namespace) -> int:
    from simul.common.launch.commands.policies import load_policy

    return load_policy(options.run_dir, options.name, options.checkpoint)


def _unload_policy(options: argparse.Namespace) -> int:
    from simul.common.launch.commands.policies import unload_policy

    return unload_policy(options.run_dir, options.name, drain=options.drain)
