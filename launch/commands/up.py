"""`simul up`: its command line. `supervisor/supervisor.py` does the work."""

from __future__ import annotations

import argparse
import importlib.util
from contextlib import nullcontext
from typing import TYPE_CHECKING

from simul.common.errors import ConfigError
from simul.common.runtime.extras import install_extra
from simul.common.runtime.installation import CONFIGS
from simul.common.runtime.terminal_text import print_text
from simul.launch.commands.page import PORT, check_installed
from simul.launch.option_types import add_trust, checkpoint, path, port, whole_number

if TYPE_CHECKING:
    from simul.common.config.schema import Config
    from simul.common.config.trust import Trust
    from simul.common.role.run_directory import RunDir
    from simul.launch.cluster.cluster import Cluster

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
        "--from", dest="origin", type=checkpoint, metavar="CHECKPOINT",
        help="a new run begins with these weights: a checkpoint, a run directory (its newest whole one), either in a "
        "store (s3://...), or zoo:NAME",
    )  # fmt: skip
    up.add_argument(
        "--stop-after-decisions",
        type=whole_number,
        metavar="N",
        help="stop cleanly after N answered decisions of this start",
    )
    up.add_argument(
        "--new-horizon",
        action="store_true",
        help="a resumed run's schedules (learner.total_decisions: auto) end with this start, not with its first one",
    )
    up.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V", help="e.g. learner.clip=0.1")
    add_trust(up)
    up.add_argument("--on", choices=["ray"], help="place the processes on a cluster: ray (the extra `ray`)")
    up.add_argument("--address", metavar="ADDRESS", help="with --on: the cluster's; auto, the default: this machine's")
    up.add_argument(
        "--dry-run", action="store_true", help="with --on: print what would be asked for, and what is lacking"
    )
    up.add_argument("--page", action="store_true", help="show the run in a browser, too: its address is printed")
    up.add_argument(
        "--page-port", type=port, metavar="PORT", help=f"the same, at this port (default: {PORT}; 0: a free one)"
    )
    up.add_argument("--plain", action="store_true", help="plain lines instead of the live panel")
    up.add_argument("--from-make", action="store_true", help=argparse.SUPPRESS)  # see ForegroundGroup
    up.set_defaults(run=_up)


def _up(options: argparse.Namespace) -> int:
    if options.dry_run and not options.on:
        raise ConfigError("--dry-run shows where a cluster would place the processes: it needs --on ray.")
    if options.address and not options.on:
        raise ConfigError(f"--address {options.address} names a cluster, and the run is on this machine: add --on ray.")
    from simul.common.config.loader import load_config
    from simul.common.role.run_directory import RunDir
    from simul.launch.monitoring.notices.addresses import open_addresses
    from simul.launch.monitoring.view.display import EVENT_LOG, EventLogDisplay, make_display
    from simul.launch.processes.signals import ForegroundGroup
    from simul.launch.supervisor.checkpoint_files import InitialCheckpoint, new_horizon
    from simul.launch.supervisor.page_process import PageProcess, page_command
    from simul.launch.supervisor.run_notices import RunNotices
    from simul.launch.supervisor.supervisor import Supervisor

    shown = options.page or options.page_port is not None
    if shown:
        check_installed()
    overrides = list(options.overrides)
    if options.stop_after_decisions is not None:
        overrides.append(f"stop_after_decisions={options.stop_after_decisions}")
    notes: list[str] = []
    written: dict[str, str] = {}
    config = load_config(options.config, overrides, options.mode, notes, written)
    run_dir = RunDir(options.run_dir or config.run_dir)
    if options.new_horizon:
        overrides.append(f"learner.total_decisions={new_horizon(config, run_dir)}")
        config = load_config(options.config, overrides, options.mode, [], written)
    if options.dry_run:
        return _dry_run(config, options.address or "auto")
    cluster = _cluster(config, run_dir, options) if options.on else None
    trust = _named_trust(config, trust=options.trust)
    origin = InitialCheckpoint(options.origin, run_dir, trust) if options.origin else None
    display = EventLogDisplay(make_display(options.plain), run_dir.logs / EVENT_LOG)
    for note in notes:
        display.say(note)
    notices = RunNotices(config, run_dir, open_addresses())
    number = PORT if options.page_port is None else options.page_port
    page = PageProcess(page_command(run_dir, number)) if shown else None
    supervisor = Supervisor(
        config, run_dir, display, origin=origin, notices=notices, cluster=cluster, written=written, trust=trust,
        page=page,
    )  # fmt: skip
    with ForegroundGroup() if options.from_make else nullcontext():
        return supervisor.run()


def _named_trust(config: Config, *, trust: bool) -> Trust:
    """The values of a configuration that the command line names are trusted, also out of data."""
    from simul.common.config.trust import EVERYTHING, Trust, values_to_trust

    return EVERYTHING if trust else Trust(values=values_to_trust(config))


def _cluster(config: Config, run_dir: RunDir, options: argparse.Namespace) -> Cluster:
    from simul.launch.cluster.cluster import Cluster, check_config
    from simul.launch.cluster.placement import bundles_of

    if options.origin is not None:
        raise ConfigError(
            "--from copies a checkpoint on this machine. For a run on a cluster start once with it here and the same "
            "store (--stop-after-decisions 1), then with --on ray."
        )
    check_config(config)
    _check_installed()
    from simul.launch.cluster.ray_engine import RayEngine

    return Cluster(RayEngine(options.address or "auto", bundles_of(config)), config, run_dir)


def _dry_run(config: Config, address: str) -> int:
    """Exit code 0: every bundle has a machine; 1: something is lacking."""
    from simul.launch.cluster.cluster import check_config
    from simul.launch.cluster.placement import bundles_of, placement_text

    check_config(config)
    _check_installed()
    from simul.launch.cluster.ray_engine import connect, machines_of_cluster

    connect(address)
    text, complete = placement_text(bundles_of(config), machines_of_cluster())
    print_text(text)
    return 0 if complete else 1


def _check_installed() -> None:
    if importlib.util.find_spec("ray") is None:
        raise ConfigError(f"--on ray: the package ray is not installed. Run: {install_extra('ray')}")
