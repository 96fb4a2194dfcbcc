"""`simul profile`: its command line. `monitoring/profiling/profiler.py` measures, `bottleneck.py` judges."""

from __future__ import annotations

import argparse
import contextlib
import math
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simul.common.runtime.terminal_text import print_text
from simul.launch.option_types import path

if TYPE_CHECKING:
    from simul.common.role.run_directory import RunDir
    from simul.launch.monitoring.profiling.flame_graphs import FlameGraphs
    from simul.launch.monitoring.profiling.profiler import Profiler

# Settings of a run that is only profiled: no end, no store, no fixed ports, nothing beside the training. `--set` wins.
FRESH = (
    "stop_after_decisions=0", 'store=""', 'server.endpoint=""', "server.prometheus_port=0", "prometheus_port=0",
    "evaluation.every_decisions=0", "metrics=[]", 'metrics_callback=""',
)  # fmt: skip


def add_profile(profile: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    profile.add_argument(
        "config", nargs="?", type=path, metavar="CONFIG",
        help="profile a new run of this configuration, which is removed afterwards (default: the active run)",
    )  # fmt: skip
    profile.add_argument("--seconds", type=seconds, default=30.0, metavar="N", help="how long (default: 30)")
    profile.add_argument("--run-dir", type=path, metavar="DIR", help="the active run (default: the one below runs/)")
    profile.add_argument("--mode", metavar="NAME", help="with CONFIG: a section of its `modes`")
    profile.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="K=V",
        help="with CONFIG; also of what a profiled run lacks by itself: end, store, fixed ports, evaluations, metrics",
    )  # fmt: skip
    profile.add_argument(
        "--out", type=path, metavar="FILE",
        help="the figures as JSON (default: profile.json in the run directory; with CONFIG in the current one)",
    )  # fmt: skip
    profile.add_argument("--json", action="store_true", help="print the figures as JSON, too")
    profile.add_argument("--py-spy", action="store_true", help="also a flame graph of each process (extra [profile])")
    profile.set_defaults(run=_profile)


def seconds(text: str) -> float:
    """A number of seconds above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of seconds > 0, got {text!r}")
    return number


def _profile(options: argparse.Namespace) -> int:
    """Raises ConfigError, and SimulError where the run ended before."""
    from simul.common.config.loader import DEFAULT_MODE
    from simul.common.errors import ConfigError
    from simul.launch.monitoring.profiling.flame_graphs import FlameGraphs, find_py_spy
    from simul.launch.monitoring.profiling.profiler import Profiler
    from simul.launch.monitoring.view.output import complain

    if options.config is None and (options.mode is not None or options.overrides):
        raise ConfigError("--mode and --set are for a new run: name its CONFIG, as in `simul profile cartpole`.")
    if options.config is not None and options.run_dir is not None:
        raise ConfigError("CONFIG starts a new run, --run-dir names an active one: give one of the two.")
    if options.out is not None and not options.out.absolute().parent.is_dir():
        raise ConfigError(f"--out: there is no folder {options.out.absolute().parent}. Make it, or name another file.")
    if options.out is not None and options.out.is_dir():
        raise ConfigError(f"--out: {options.out} is a folder. Name a file in it.")
    program = find_py_spy() if options.py_spy else ""
    fresh = options.config is not None
    with (
        _new_run(options) if fresh else _active_run(options.run_dir) as (run_dir, ended),
        FlameGraphs(program) as graphs,
    ):
        out = (options.out or (Path() if fresh else run_dir.root) / "profile.json").absolute()
        name = f"a new run of {options.config}" if fresh else str(run_dir.root)
        complain(f"Waiting for {name}.\n")
        profiler = Profiler(run_dir, ended, options.seconds)
        profiler.begin(warm_up=fresh)
        complain(f"Measuring for {options.seconds:g} s.\n")
        if program:
            graphs.start(profiler.pids(), options.seconds, out.with_suffix(""))
        started: dict[str, Any] = {"configuration": None, "mode": None, "settings": []}
        if fresh:
            started = {
                "configuration": str(options.config), "mode": options.mode or DEFAULT_MODE,
                "settings": options.overrides,
            }  # fmt: skip
        _finish(profiler, graphs, run_dir, out, name, started, as_json=options.json)
    return 0


def _finish(
    profiler: Profiler, graphs: FlameGraphs, run_dir: RunDir, out: Path, name: str, started: Mapping[str, Any], *,
    as_json: bool,
) -> None:  # fmt: skip
    """Print the figures, and write them; `name`: of the run, `started`: how. Raises ConfigError, SimulError."""
    import msgspec

    from simul.common.errors import ConfigError
    from simul.common.runtime.machine_info import machine
    from simul.launch.monitoring.profiling.bottleneck import find_bottleneck
    from simul.launch.monitoring.profiling.profile_text import profile_text
    from simul.launch.monitoring.view.output import complain

    profile = profiler.finish()
    pictures, failure = graphs.finish()
    config = run_dir.read_config()
    bottleneck = find_bottleneck(profile, config)
    figures: dict[str, Any] = {
        **started, "config": msgspec.to_builtins(config), **msgspec.to_builtins(profile), **bottleneck._asdict(),
        "machine": machine(),
        "flame_graphs": [str(picture) for picture in pictures],
    }  # fmt: skip
    text = msgspec.json.format(msgspec.json.encode(figures), indent=2).decode()
    print_text(text if as_json else profile_text(profile, bottleneck, [out, *pictures], name))
    if failure:
        complain(f"{failure}\n")
    try:
        _write(out, text + "\n", run_dir)
    except OSError as error:
        raise ConfigError(f"{out} cannot be written: {error.strerror}. Choose another file with --out.") from None


def _write(out: Path, text: str, run_dir: RunDir) -> None:
    """In a run directory, which others may have filled, a link is replaced; elsewhere the user names the file."""
    from simul.common.runtime.private_files import replace_file

    if out.parent == run_dir.root:
        replace_file(out, text.encode())
    else:
        out.write_text(text)


@contextlib.contextmanager
def _active_run(root: Path | None) -> Iterator[tuple[RunDir, Callable[[], str]]]:
    """The run directory, and what says whether the run has ended. Raises ConfigError where it is not active."""
    from simul.common.role.run_lock import choose_run, living_owner

    run_dir = choose_run(root, active_only=True, instead=", or profile a new one: `simul profile CONFIG`")
    yield run_dir, lambda: "" if living_owner(run_dir) is not None else f"The run in {run_dir.root} has ended."


@contextlib.contextmanager
def _new_run(options: argparse.Namespace) -> Iterator[tuple[RunDir, Callable[[], str]]]:
    """Likewise a run in a temporary directory, which is stopped and removed. Raises ConfigError."""
    from simul.common.config.loader import DEFAULT_MODE, load_config
    from simul.common.role.run_directory import RunDir
    from simul.launch.processes.child_command import ChildCommand

    overrides, mode = [*FRESH, *options.overrides], options.mode or DEFAULT_MODE
    load_config(options.config, overrides, mode)
    with tempfile.TemporaryDirectory(prefix="simul-profile-", ignore_cleanup_errors=True) as folder:
        root = Path(folder) / "run"
        line = ["up", str(options.config), "--mode", mode, "--run-dir", str(root), "--plain"]
        before = signal.signal(signal.SIGTERM, _interrupt)
        settings = [word for each in overrides for word in ("--set", each)]
        child = ChildCommand([*line, *settings], progress=False, environment={"SIMUL_NOTIFY": ""})

        def ended() -> str:
            if child.running:
                return ""
            child.wait()
            child.check()
            return f"The run ended by itself: {child.last_lines()}"

        try:
            yield RunDir(root), ended
        finally:
            child.stop()
            signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: object) -> None:
    """SIGTERM ends the new run, too."""
    raise KeyboardInterrupt
