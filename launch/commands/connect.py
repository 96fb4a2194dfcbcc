"""`simul connect`: its command line. `diagnostics/connection_check.py` and the mock server do the work."""

from __future__ import annotations

import argparse
import os

from simul.launch.option_types import path


def add_connect(parser: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    add = parser.add_argument
    add("target", nargs="?", metavar="ENDPOINT|RUN_DIR", help="default: the run that is active")
    add("--keys", type=path, metavar="DIR", help="folder of the client's CURVE keys")
    add("--spec", metavar="FINGERPRINT", help="the spec fingerprint that your client sends")
    add(
        "--listen",
        metavar="ENDPOINT",
        help="run a mock server: show what your client sends, and what is wrong with it",
    )
    parser.set_defaults(run=_connect)


def _connect(options: argparse.Namespace) -> int:
    if options.listen is not None:
        from simul.common.errors import ConfigError
        from simul.launch.processes.role_process import run_in_foreground

        if options.keys is not None:
            raise ConfigError("The mock server of --listen has no keys: leave --keys out. Let your client use none.")
        run_dir = [] if options.target is None else [f"--run-dir={options.target}"]
        spec = [] if options.spec is None else [f"--spec={options.spec}"]
        arguments = [f"--parent={os.getpid()}", *run_dir, *spec, "--", options.listen]
        return run_in_foreground("simul.inference_server.mock_server", arguments)
    from simul.launch.diagnostics.connection_check import check_connection

    return check_connection(options.target, keys=options.keys, spec=options.spec)
