"""`simul logs`: its command line. `monitoring/merged_logs.py` does the work."""

from __future__ import annotations

import argparse
import contextlib
import re
import signal
import sys
import time
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from simul.launch.option_types import add_run, named_run

if TYPE_CHECKING:
    from simul.launch.monitoring.merged_logs import LogEntry

POLL_SEC = 0.25
UNITS_SEC = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def add_logs(logs: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    add_run(logs, "the run that is active below runs/, else the latest")
    logs.add_argument(
        "--role", dest="roles", action="append", default=[], metavar="R",
        help="learner, inference, worker, supervisor, evaluation, or one process such as worker-1; may be repeated",
    )  # fmt: skip
    logs.add_argument(
        "--since", type=moment, default=0.0, metavar="T", help="10m, 2h, or a date and time such as '2026-11-22 20:00'"
    )
    logs.add_argument("--follow", "-f", action="store_true", help="go on with new lines until Ctrl-C")
    logs.set_defaults(run=_logs)


def moment(text: str) -> float:
    """Seconds since the epoch, of a time span before now or of a date and time."""
    if span := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip()):
        return time.time() - float(span[1]) * UNITS_SEC[span[2]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"expected a time span such as 10m or 2h, or a date and time such as '2026-11-22 20:00', got {text!r}"
        ) from None


def _logs(options: argparse.Namespace) -> int:
    """Print the lines so far, and with `--follow` new ones until Ctrl-C. Raises ConfigError."""
    from simul.common.errors import ConfigError
    from simul.common.role.run_lock import choose_run
    from simul.launch.monitoring.merged_logs import MergedLogs, check_roles, process_filter

    run_dir = choose_run(named_run(options), active_only=False)
    if not run_dir.logs.is_dir():
        raise ConfigError(f"There is no run in {run_dir.root} (no folder logs). Start one with `simul up`.")
    check_roles(options.roles, run_dir.logs)
    with MergedLogs(run_dir.logs, options.since, process_filter(options.roles)) as logs:
        if not options.follow:
            _print(logs.entries(last=True))
            return 0
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                _print(logs.entries(last=False))
                time.sleep(POLL_SEC)
    return 0


def _print(entries: Iterable[LogEntry]) -> None:
    from simul.launch.monitoring.merged_logs import format_entry

    coloured = sys.stdout.isatty()
    for entry in entries:
        sys.stdout.write("".join(f"{line}\n" for line in format_entry(entry, coloured=coloured)))
    sys.stdout.flush()
