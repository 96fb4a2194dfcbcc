"""The command `simul` and its subcommands. Imports no role."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from simul.common.config.option_types import path
from simul.common.launch.commands.connect_options import add_connect
from simul.common.launch.commands.eval_options import add_eval
from simul.common.launch.commands.play_options import add_play
from simul.common.launch.commands.policies_options import add_policies
from simul.common.launch.commands.serve_options import add_serve
from simul.common.launch.commands.up_options import add_up
from simul.common.launch.monitoring.output import complain
from simul.common.protocol.errors import ConfigError, SimulError


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: done; 1: something failed; 2: a sentence says what to change."""
    parser = _parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        return 2
    options, rest = parser.parse_known_args(arguments)
    if rest and options.run is not _loadtest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.rest = rest
    try:
        return int(options.run(options))
    except ConfigError as error:
        complain(f"simul: {error}\n")
        return 2
    except SimulError as error:
        complain(f"simul: {error}\n")
        return int(getattr(error, "exit_code", 1))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of stdout, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="simul", description="One mind playing every table.")
    parser.add_argument("--version", action="version", version=f"simul {_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, summary: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")

    add_up(command("up", "train: start everything, watch it, stop it cleanly on Ctrl-C"))

    status = command("status", "figures of a run")
    status.add_argument("--run-dir", type=path, help="default: the run that is active below runs/, else the latest")
    status.add_argument("--json", action="store_true", help="everything, as JSON")
    status.set_defaults(run=_status)

    down = command("down", "stop a run cleanly, as Ctrl-C does")
    down.add_argument("--run-dir", type=path, help="default: the run that is active below runs/")
    down.set_defaults(run=_down)

    add_eval(command("eval", "play checkpoints, greedily, with frozen weights, and bots"))
    add_serve(command("serve", "serve a checkpoint on its own, for clients in any language"))
    add_play(command("play", "Pokémon: play on a Showdown server, against people and programs"))
    add_connect(command("connect", "what is wrong with a client's handshake"))

    keys = command("keys", "CURVE keys, for a server that other machines reach")
    new = keys.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "new", help="make a server's and a client's", description="Make a server's and a client's."
    )
    new.add_argument("folder", nargs="?", type=path, default=Path("keys"), metavar="DIR", help="default: keys")
    new.add_argument("--client", default="client", metavar="NAME", help="whose keys, beside the server's")
    new.set_defaults(run=_keys_new)

    loadtest = commands.add_parser(
        "loadtest", add_help=False, help="how many actions a second the server gives at which latency"
    )
    loadtest.set_defaults(run=_loadtest)  # its options are its own: see simul.inference_server.loadtest

    add_policies(command("policies", "which policies a running server serves: list, load, unload"))

    setup = command("setup-pokemon", "fetch the battle simulator and Node; in a checkout `make setup` does it")
    setup.set_defaults(run=_setup_pokemon)

    doctor = command("doctor", "what is missing on this machine, and the command that fixes it")
    doctor.set_defaults(run=_doctor)
    return parser


def _version() -> str:
    try:
        return version("simul")
    except PackageNotFoundError:
        return "(not installed: run `make setup`)"


def _status(options: argparse.Namespace) -> int:
    from simul.common.launch.commands.remote import status

    return status(options.run_dir, as_json=options.json)


def _down(options: argparse.Namespace) -> int:
    from simul.common.launch.commands.remote import down

    return down(options.run_dir)


def _keys_new(options: argparse.Namespace) -> int:
    from simul.common.launch.commands.keys import keys_new

    return keys_new(options.folder, options.client)


def _loadtest(options: argparse.Namespace) -> int:
    from simul.common.launch.supervisor.processes import run_in_foreground

    return run_in_foreground("simul.inference_server.loadtest", options.rest)


def _setup_pokemon(options: argparse.Namespace) -> int:
    from simul.common.launch.supervisor.processes import run_in_foreground

    return run_in_foreground("simul.env_worker.games.pokemon.simulator.setup_node", [])


def _doctor(options: argparse.Namespace) -> int:
    from simul.common.launch.diagnostics.doctor import doctor

    return doctor()


if __name__ == "__main__":
    sys.exit(main())
