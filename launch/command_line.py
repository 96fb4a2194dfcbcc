"""The arguments of the command `simul` and its subcommands, as each of `launch/commands` adds them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from simul.launch.commands.connect import add_connect
from simul.launch.commands.eval import add_eval
from simul.launch.commands.export import add_export
from simul.launch.commands.init import add_init
from simul.launch.commands.keys import add_keys
from simul.launch.commands.league import add_league
from simul.launch.commands.logs import add_logs
from simul.launch.commands.page import add_page
from simul.launch.commands.perft import add_perft
from simul.launch.commands.play import add_play
from simul.launch.commands.plot import add_plot
from simul.launch.commands.policies import add_policies
from simul.launch.commands.profile import add_profile
from simul.launch.commands.serve import add_serve
from simul.launch.commands.showdown import add_showdown
from simul.launch.commands.status import add_down, add_status
from simul.launch.commands.sweep import add_sweep
from simul.launch.commands.up import add_up
from simul.launch.commands.watch import add_watch
from simul.launch.commands.zoo import add_zoo


def parse(arguments: Sequence[str] | None) -> argparse.Namespace | None:
    """The options, with the function `run`; None where there are none, and the help was printed."""
    parser = make_parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        return None
    options, rest = parser.parse_known_args(arguments)
    if rest and options.run is not _loadtest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.rest = rest
    return options


class _CommandParser(argparse.ArgumentParser):
    """Refuses what it does not know itself, so that the usage shown is that of the command."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        options, rest = super().parse_known_args(args, namespace)
        if rest and self.get_default("run") is not _loadtest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return options, rest


def make_parser() -> argparse.ArgumentParser:
    """Of `simul` with all subcommands."""
    parser = argparse.ArgumentParser(prog="simul", description="One mind playing every table.")
    parser.add_argument("--stop-at-eof", action="store_true", help=argparse.SUPPRESS)  # see launch/api.py
    parser.add_argument("--version", action="version", version=f"simul {_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_CommandParser)

    def command(name: str, summary: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")

    add_up(command("up", "train: start everything, watch it, stop it cleanly on Ctrl-C"))

    add_init(command("init", "a new game of your own: a folder with a game, a network and a configuration"))
    add_status(command("status", "figures of a run"))
    add_page(command("page", "runs in a browser: curves, processes, events, as they come"))
    add_logs(command("logs", "what all processes of a run have logged, by time"))
    add_profile(command("profile", "where the time of a run goes, what limits it, and the setting to try"))
    add_down(command("down", "stop a run cleanly, as Ctrl-C does"))
    add_plot(command("plot", "learning curves of runs and seeds as PNG or SVG"))
    add_sweep(command("sweep", "search settings: trials, each a run of its own, of which the bad ones end early"))
    add_eval(command("eval", "play checkpoints, greedily, with frozen weights, and bots"))
    add_league(command("league", "who of a run's past and present policies beats whom: payoffs and ratings"))
    add_serve(command("serve", "serve a checkpoint on its own, for clients in any language"))
    add_play(command("play", "play against a policy or a bot: at a table here, or Pokémon on a Showdown server"))
    add_showdown(command("showdown", "a Showdown server on this machine, for people and poke-env players"))
    add_watch(command("watch", "watch a game of policies and bots turn by turn, or a replay"))
    add_export(command("export", "a policy as one file that answers without Simul (ONNX)"))
    add_zoo(command("zoo", "the policies that are shipped, and their cards"))
    add_perft(command("perft", "count the sequences of actions of a game without chance"))
    add_connect(command("connect", "what is wrong with a client's handshake"))

    add_keys(command("keys", "CURVE keys, for a server that other machines reach"))

    loadtest = commands.add_parser(
        "loadtest", add_help=False, help="how many actions a second the server gives at which latency"
    )
    loadtest.set_defaults(run=_loadtest)  # its options are its own: see simul.launch.loadtest

    add_policies(command("policies", "which policies a running server serves: list, load, unload"))

    setup = command(
        "setup-pokemon", "fetch the battle simulator and Node, about 370 MiB; in a checkout `make setup` does it"
    )
    setup.set_defaults(run=_setup_pokemon)

    doctor = command("doctor", "what is missing on this machine, and the command that installs it")
    doctor.set_defaults(run=_doctor)
    return parser


def _version() -> str:
    try:
        return version("simul")
    except PackageNotFoundError:
        return "(not installed: run `make setup`)"


def _loadtest(options: argparse.Namespace) -> int:
    from simul.launch.processes.role_process import run_in_foreground

    return run_in_foreground("simul.launch.loadtest", [f"--parent={os.getpid()}", *options.rest])


def _setup_pokemon(options: argparse.Namespace) -> int:
    from simul.launch.processes.role_process import run_in_foreground

    return run_in_foreground("simul.env_worker.games.pokemon.install.setup_node", [])


def _doctor(options: argparse.Namespace) -> int:
    from simul.launch.diagnostics.doctor import doctor

    return doctor()
