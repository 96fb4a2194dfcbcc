"""`simul perft`: its command line. `simul.env_worker.perft` does the work."""

from __future__ import annotations

import argparse


def add_perft(perft: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    perft.add_argument("game", metavar="GAME", help="a game, a configuration, or module:Class of a simul.TurnGame")
    perft.add_argument("depth", metavar="DEPTH", type=int, help="actions of the longest sequences")
    perft.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V", help="as for `up`")
    perft.set_defaults(run=_perft)


def _perft(options: argparse.Namespace) -> int:
    from simul.launch.processes.role_process import run_in_foreground

    overrides = [word for override in options.overrides for word in ("--set", override)]
    return run_in_foreground("simul.env_worker.perft", [options.game, str(options.depth), *overrides])
