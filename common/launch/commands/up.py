"""`simul up`: its command line. `supervisor/supervisor.py` does the work."""

from __future__ import annotations

import argparse
from contextlib import nullcontext

from simul.common.config.option_types import path, whole_number
from simul.common.runtime.installation import CONFIGS

DEFAULT = CONFIGS / "pokemon.yaml"
SHIPPED = sorted(file.stem for file in CONFIGS.glob("*.yaml"))


def add_up(up: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    up.add_argument(
        "config", nargs="?", type=path, default=DEFAULT, metavar="CONFIG",
        help=f"a YAML file, or a shipped one by name: {', '.join(SHIPPED)} (default: {DEFAULT.stem})",
    )  # fmt: skip
    up.add_argument(
        "--mode", default="default", metavar="NAME",
        help="a section of the configuration's `modes`: most shipped ones have test (seconds) and quick (minutes)",
    )  # fmt: skip
    up.add_argument(
        "--run-dir", type=path, metavar="DIR", help="where the run lies (default: run_dir of the configuration)"
    )
    up.add_argument(
        "--from", dest="origin", type=path, metavar="CHECKPOINT",
        help="a new run begins with these weights: a checkpoint, or a run directory (its newest whole one)",
    )  # fmt: skip
    up.add_argument(
        "--stop-after-decisions", type=whole_number, metavar="N", help="stop cleanly after N answered decisions"
    )
    up.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V", help="e.g. learner.clip=0.1")
    up.add_argument("--plain", action="store_true", help="plain lines instead of the live panel")
    up.add_argument("--from-make", action="store_true", help=argparse.SUPPRESS)  # see ForegroundGroup
    up.set_defaults(run=_up)


def _up(options: argparse.Namespace) -> int:
    from simul.common.config.loader import load_config
    from simul.common.config.run_directory import RunDir
    from simul.common.launch.monitoring.notice_addresses import open_addresses
    from simul.common.launch.monitoring.view import EVENT_LOG, EventLogDisplay, make_display
    from simul.common.launch.processes.signals import ForegroundGroup
    from simul.common.launch.supervisor.checkpoint_files import InitialCheckpoint
    from simul.common.launch.supervisor.run_notices import RunNotices
    from simul.common.launch.supervisor.supervisor import Supervisor

    overrides = list(options.overrides)
    if options.stop_after_decisions is not None:
        overrides.append(f"stop_after_decisions={options.stop_after_decisions}")
    notes: list[str] = []
    config = load_config(options.config, overrides, options.mode, notes)
    run_dir = RunDir(options.run_dir or config.run_dir)
    origin = InitialCheckpoint(options.origin, run_dir) if options.origin else None
    display = EventLogDisplay(make_display(options.plain), run_dir.logs / EVENT_LOG)
    for note in notes:
        display.say(note)
    notices = RunNotices(config, run_dir, open_addresses())
    supervisor = Supervisor(config, run_dir, display, origin=origin, notices=notices)
    with ForegroundGroup() if options.from_make else nullcontext():
        return supervisor.run()
