"""`simul plot`: its command line. `monitoring/curves/plot.py` does the work."""

from __future__ import annotations

import argparse
from pathlib import Path

from simul.common.runtime.terminal_text import print_text
from simul.launch.option_types import path


def add_plot(plot: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    plot.add_argument("runs", nargs="*", type=path, metavar="RUN", help="run directories, such as runs/cartpole")
    plot.add_argument(
        "--run-dir", dest="run_dirs", action="append", default=[], type=path, metavar="RUN", help="the same"
    )
    plot.add_argument(
        "--figure", dest="figures", action="append", default=[], metavar="NAME",
        help="a column of curves.csv, such as episodes/return_mean; several: side by side (default: the usual ones)",
    )  # fmt: skip
    plot.add_argument(
        "--out", type=path, default=Path("curves.png"), metavar="FILE", help=".png or .svg (default: %(default)s)"
    )
    plot.add_argument("--x", choices=("decisions", "time"), default="decisions", help="default: %(default)s")
    plot.add_argument(
        "--band", choices=("minmax", "sem"), default="minmax",
        help="of several seeds: from the least to the greatest, or the mean's standard error (default: %(default)s)",
    )  # fmt: skip
    plot.set_defaults(run=_plot)


def _to_stderr(sentence: str) -> None:
    from simul.launch.monitoring.view.output import complain

    complain(f"simul: {sentence}\n")


def _plot(options: argparse.Namespace) -> int:
    from simul.common.errors import ConfigError
    from simul.launch.monitoring.curves.plot import plot

    runs = [*options.runs, *options.run_dirs]
    if not runs:
        raise ConfigError("Expected a run directory, got none: `simul plot runs/cartpole`.")
    names = plot(runs, options.figures, options.out, x=options.x, band=options.band, say=_to_stderr)
    print_text(f"{options.out}: {', '.join(names)}")
    return 0
