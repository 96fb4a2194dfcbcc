"""`simul connect`: its command line. `diagnostics/connection_check.py` and `mock_server.py` do the work."""

from __future__ import annotations

import argparse

from simul.common.config.option_types import path


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
        from simul.common.launch.diagnostics.mock_server import listen

        return listen(options.listen, options.target, spec=options.spec)
    from simul.common.launch.diagnostics.connection_check import check_connection

    return check_connection(options.target, keys=options.keys, spec=options.spec)
