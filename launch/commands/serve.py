"""`simul serve`: its command line. `supervisor/inference_only.py` does the work."""

from __future__ import annotations

import argparse

from simul.launch.option_types import add_trust, checkpoint, path

LAST_PORT = 65535


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    add = parser.add_argument
    add(
        "--checkpoint", type=checkpoint, required=True, metavar="D",
        help="a checkpoint, a run directory, either in a store (s3://...), or zoo:NAME",
    )  # fmt: skip
    add("--endpoint", metavar="E", help="where clients connect (default: tcp://127.0.0.1:5555)")
    add("--curve-keys", type=path, metavar="DIR", help="of `simul keys new`; required where other machines connect")
    add("--prometheus-port", type=_port, metavar="N", help="figures at http://127.0.0.1:N/metrics")
    add("--set", dest="overrides", action="append", default=[], metavar="K=V", help="e.g. server.max_batch=64")
    add_trust(parser)
    add("--plain", action="store_true", help="plain lines instead of the live panel")
    parser.set_defaults(run=_serve)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= LAST_PORT:
        raise argparse.ArgumentTypeError(f"expected a port, 1 to {LAST_PORT}; got {text!r}")
    return int(text)


def _serve(options: argparse.Namespace) -> int:
    from simul.common.config.loader import command_line_trust
    from simul.launch.monitoring.view.display import make_display
    from simul.launch.monitoring.view.serve_panel import serve_line, serve_panel
    from simul.launch.supervisor.inference_only import serve
    from simul.launch.supervisor.store_process import local_checkpoints

    with local_checkpoints([options.checkpoint]) as (checkpoint,):
        return serve(
            checkpoint, make_display(options.plain, serve_panel, serve_line), endpoint=options.endpoint,
            curve_keys=options.curve_keys, prometheus_port=options.prometheus_port, overrides=options.overrides,
            trust=command_line_trust(options.overrides, trust=options.trust),
        )  # fmt: skip
