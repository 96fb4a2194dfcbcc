"""`simul sweep`: its command line. `sweep/sweep.py` does the work."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from simul.launch.option_types import count, path

FOLDER = Path("runs", "sweeps")
PRUNERS = ("median", "halving", "none")


def add_sweep(sweep: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    sweep.add_argument("config", metavar="CONFIG", help="as of `simul up`: a YAML file, or the name of a shipped one")
    sweep.add_argument(
        "--space", type=path, required=True, metavar="FILE",
        help="YAML: keys of the configuration, each with {low, high, log} or {choices: [...]}",
    )  # fmt: skip
    sweep.add_argument("--trials", type=count, required=True, metavar="N", help="of the sweep, earlier starts included")
    sweep.add_argument("--parallel", type=count, default=1, metavar="K", help="trials at a time (default: %(default)s)")
    sweep.add_argument(
        "--study", type=path, metavar="DIR",
        help=f"where the sweep lies, and goes on: a folder, or a name below {FOLDER} (default: that of the CONFIG)",
    )  # fmt: skip
    sweep.add_argument("--stop-after-decisions", type=count, metavar="N", help="of each trial (default: as configured)")
    sweep.add_argument(
        "--prune", choices=PRUNERS, default="median",
        help="which trials end early: those below the median of finished ones at the same evaluation, by successive "
        "halving, or none (default: %(default)s)",
    )  # fmt: skip
    sweep.add_argument("--mode", default="default", metavar="NAME", help="as for `up`")
    sweep.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V", help="as for `up`")
    sweep.set_defaults(run=_sweep)


def _sweep(options: argparse.Namespace) -> int:
    from simul.launch.sweep.sweep import SweepOptions, sweep

    folder = options.study or FOLDER / Path(options.config).stem
    if len(folder.parts) == 1 and not os.path.isdir(folder):
        folder = FOLDER / folder
    return sweep(
        SweepOptions(
            options.config, options.space, options.trials, folder, options.mode, tuple(options.overrides),
            options.stop_after_decisions, options.parallel, options.prune,
        )
    )  # fmt: skip
