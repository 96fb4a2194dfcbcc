"""`simul showdown`: a local Showdown server, until Ctrl-C."""

from __future__ import annotations

import argparse
import os

from simul.launch.option_types import port


def add_showdown(showdown: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    showdown.add_argument(
        "--port", type=port, default=8000, metavar="N",
        help="default: 8000, where poke-env's players and `simul play` look; 0: a free one",
    )  # fmt: skip
    showdown.set_defaults(run=_showdown)


def _showdown(options: argparse.Namespace) -> int:
    from simul.launch.processes.role_process import run_in_foreground

    module = "simul.env_worker.games.pokemon.showdown.serve"
    return run_in_foreground(module, [f"--port={options.port}", f"--parent={os.getpid()}"])
