"""`simul ...`: the commands. Imports no role."""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from common.checkout import CHECKOUT
from common.errors import ConfigError, SimulError
from common.launch.connect_options import add_connect
from common.launch.eval_options import add_eval
from common.launch.play_options import add_play
from common.launch.policies_options import add_policies
from common.launch.serve_options import add_serve
from common.option_types import path


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: done; 1: something failed; 2: a sentence says what to change."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and options.run is not _loadtest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.rest = rest
    try:
        _check_checkout()
        return int(options.run(options))
    except ConfigError as error:
        sys.stderr.write(f"simul: {error}\n")
        return 2
    except SimulError as error:
        sys.stderr.write(f"simul: {error}\n")
        return int(getattr(error, "exit_code", 1))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="simul", description="One mind playing every table.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    up = commands.add_parser("up", help="train: start everything, watch it, stop it cleanly on Ctrl-C")
    up.add_argument("config", nargs="?", type=path, default=CHECKOUT / "configs" / "pokemon.yaml", metavar="CONFIG")
    up.add_argument("--run-dir", type=path, help="where the run lies (default: run_dir of the configuration)")
    up.add_argument("--stop-after-decisions", type=int, metavar="N", help="stop cleanly after N answered decisions")
    up.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V", help="e.g. learner.clip=0.1")
    up.add_argument("--plain", action="store_true", help="plain lines instead of the live panel")
    up.add_argument("--from-make", action="store_true", help=argparse.SUPPRESS)  # see common.launch.terminal
    up.set_defaults(run=_up)

    status = commands.add_parser("status", help="figures of a run")
    status.add_argument("--run-dir", type=path, help="default: the run that is active below runs/, else the latest")
    status.add_argument("--json", action="store_true", help="everything, as JSON")
    status.set_defaults(run=_status)

    down = commands.add_parser("down", help="stop a run cleanly, as Ctrl-C does")
    down.add_argument("--run-dir", type=path, help="default: the run that is active below runs/")
    down.set_defaults(run=_down)

    add_eval(commands.add_parser("eval", help="play checkpoints, greedily, with frozen weights, and bots"))
    add_serve(commands.add_parser("serve", help="serve a checkpoint on its own, for clients in any language"))
    add_play(commands.add_parser("play", help="Pokémon: play on a Showdown server, against people and programs"))
    add_connect(commands.add_parser("connect", help="what is wrong with a client's handshake"))

    keys = commands.add_parser("keys", help="CURVE keys, for a server that other machines reach")
    new = keys.add_subparsers(required=True, metavar="COMMAND").add_parser("new", help="make a server's and a client's")
    new.add_argument("folder", nargs="?", type=path, default=Path("keys"), metavar="DIR", help="default: keys")
    new.add_argument("--client", default="client", metavar="NAME", help="whose keys, beside the server's")
    new.set_defaults(run=_keys_new)

    loadtest = commands.add_parser(
        "loadtest", add_help=False, help="how many actions a second the server gives at which latency"
    )
    loadtest.set_defaults(run=_loadtest)  # its options are its own: see inference_server.loadtest

    add_policies(commands.add_parser("policies", help="which policies a running server serves: list, load, unload"))

    doctor = commands.add_parser("doctor", help="what is missing on this machine, and the command that mends it")
    doctor.set_defaults(run=_doctor)
    return parser


def _up(options: argparse.Namespace) -> int:
    from common.launch.supervisor import Supervisor
    from common.launch.terminal import OwnForeground
    from common.launch.view import make_display
    from common.rundir import RunDir
    from common.strict_yaml import load_config

    overrides = list(options.overrides)
    if options.stop_after_decisions is not None:
        overrides.append(f"stop_after_decisions={options.stop_after_decisions}")
    config = load_config(options.config, overrides)
    supervisor = Supervisor(config, RunDir(options.run_dir or config.run_dir), make_display(options.plain))
    with OwnForeground() if options.from_make else nullcontext():
        return supervisor.run()


def _status(options: argparse.Namespace) -> int:
    from common.launch.remote import status

    return status(options.run_dir, as_json=options.json)


def _down(options: argparse.Namespace) -> int:
    from common.launch.remote import down

    return down(options.run_dir)


def _keys_new(options: argparse.Namespace) -> int:
    from common.launch.keys import keys_new

    return keys_new(options.folder, options.client)


def _loadtest(options: argparse.Namespace) -> int:
    from common.launch.processes import run_in_foreground

    return run_in_foreground("inference_server.loadtest", options.rest)


def _doctor(options: argparse.Namespace) -> int:
    from common.launch.doctor import doctor

    return doctor()


def _check_checkout() -> None:
    """Raises ConfigError where the package `common` that was imported is not the one of a Simul checkout."""
    try:
        project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["name"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        project = ""
    if project != "simul":
        raise ConfigError(
            f"The package `common` was imported from {CHECKOUT}, which is not a checkout of Simul. "
            "Simul runs as an editable install of its checkout: run `make setup` there and use its .venv/bin/simul."
        )


if __name__ == "__main__":
    sys.exit(main())
