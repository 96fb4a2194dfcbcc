"""`make bench-scale`: service times of real servers, a model of them held against one and two real servers, a fleet.

Step `measure` writes a file: service times, and rates of cells that they are not fitted to. Step `validate` compares
the model with these, step `simulate` prints the tables of docs/scale.md. Without `--step` all three run. Only the first
needs quiet cores.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.harness.promises import Promise
from benchmarks.harness.report import conditions, in_one_line, markdown_table, write_json
from benchmarks.pokemon_layers.layer import Setting
from benchmarks.pokemon_layers.main import PURE_SELF_PLAY
from benchmarks.pokemon_layers.training import Training
from benchmarks.scale.layouts import fit_wake, simulate_stand
from benchmarks.scale.scenarios import SERVERS, WORKER_CORES, tables
from benchmarks.scale.stand import ROUTES, ROW_BYTES, SPEC, measure, measure_pings, stands
from benchmarks.scale.times import Measured, ServiceTimes, Window, fit, held_out, median_window
from benchmarks.serving.policy import NETWORK
from simul.common.config.loader import load_config
from simul.common.nets.build import build_network
from simul.common.nets.io import weights_to_bytes
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.install.node import find_node
from simul.launch.loadtest.cores import allowed_cores

STEPS = ("measure", "validate", "simulate")
FITTED = (*((clients, rows, False) for clients in (1, 4) for rows in (8, 32, 128, 512)), (1, 128, True))
HELD_OUT = ((1, 2, 32), (1, 2, 256), (1, 3, 64), (2, 1, 32), (2, 1, 128), (2, 2, 64), (2, 4, 128))  # servers first
WITHIN = 0.15
DEFAULT_FILE = Path("runs/scale/service_times.json")


def main() -> int:
    """Exit code 0; 1 where a rate of the model is off by more than 15%; 2 where there are no service times."""
    options = _options()
    steps = options.step or STEPS
    if "measure" in steps:
        for so_far in measure_times(options.route or tuple(ROUTES), options.rounds, options.seconds):
            _write(options.file, so_far)
        if options.training:
            _write(options.file, msgspec.structs.replace(so_far, training_us=measure_training(options.training)))
    try:
        measured = msgspec.json.decode(options.file.read_bytes(), type=Measured)
    except OSError as error:
        return _no_times(f"{options.file} cannot be read: {error.strerror}")
    except msgspec.DecodeError as error:
        return _no_times(f"{options.file} holds no service times: {error}")
    if not measured.routes:
        return _no_times(f"{options.file} holds no service times: no route was measured")
    sys.stdout.write(f"{in_one_line(measured.conditions)}\n\n{times_table(measured)}\n")
    promises: list[Promise] = []
    if "validate" in steps:
        if not measured.held_out:
            return _no_times(f"{options.file} holds no rates to compare the model with")
        promises = validate(measured)
    if "simulate" in steps:
        sys.stdout.write(f"\n{tables(measured, options.servers or SERVERS)}\n")
    return 0 if all(promise.kept for promise in promises) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", choices=STEPS, action="append", help="default: all")
    parser.add_argument("--file", type=Path, default=DEFAULT_FILE, help="service times, as JSON (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one window (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="windows of each cell (default: %(default)s)")
    parser.add_argument("--route", choices=tuple(ROUTES), action="append", help="measure these only; default: all")
    parser.add_argument("--servers", type=int, action="append", help="of the fleet's first table; default: 1 to 64")
    parser.add_argument(
        "--training", type=float, default=15.0, metavar="SEC",
        help="length of the window of `simul up`, for learner, hosts and workers; 0: leave it out",
    )  # fmt: skip
    options = parser.parse_args()
    for servers in options.servers or ():
        if not 1 <= servers <= WORKER_CORES:
            parser.error(f"argument --servers: expected 1 to {WORKER_CORES:,}, as many as worker cores, got {servers}")
    if options.rounds < 1:
        parser.error(f"argument --rounds: expected at least 1, got {options.rounds}")
    if not (math.isfinite(options.seconds) and options.seconds > 0):
        parser.error(f"argument --seconds: expected a number above 0, got {options.seconds}")
    if not (math.isfinite(options.training) and options.training >= 0):
        parser.error(f"argument --training: expected 0 or a number above it, got {options.training}")
    return options


def measure_times(routes: Sequence[str], rounds: int, seconds: float) -> Iterator[Measured]:
    """Step 1 without `simul up`: everything that is known so far, after each route.

    Cells that are fitted and cells that are held out take turns, so that a core that is slow for a while slows both.
    """
    measured = Measured(
        conditions=conditions(seconds=seconds, rounds=rounds), windows=[], routes={}, error={}, ping_us={},
        training_us={}, row_bytes=ROW_BYTES, weights_bytes=len(weights_to_bytes(build_network(NETWORK, SPEC))),
    )  # fmt: skip
    for route in routes:
        fitted: dict[tuple[int, int, bool], list[Window]] = {cell: [] for cell in FITTED}
        others: dict[tuple[int, int, int], list[list[Window]]] = {cell: [] for cell in HELD_OUT}
        with stands(route, 2) as servers:
            for _ in range(rounds):
                for (clients, rows, recorded), windows in fitted.items():
                    windows += measure(servers[:1], clients, rows, seconds, recorded=recorded)
                for (count, clients, rows), found in others.items():
                    found.append(measure(servers[:count], clients, rows, seconds))
        if ROUTES[route].proxy:
            with stands(route) as (server,):
                measured.ping_us[route] = measure_pings(server, seconds, rounds)
        medians = [median_window(windows) for windows in fitted.values()]
        times, measured.error[route] = fit(medians)
        measured.routes[route] = fit_wake(times, medians, ROW_BYTES)
        measured.windows.extend(medians)
        measured.held_out.extend(held_out(route, found) for found in others.values())
        yield measured


def measure_training(seconds: float) -> dict[str, float]:
    """Processor time of a decision in us, by process of `simul up configs/pokemon.yaml`."""
    path = ROOT / "configs/pokemon.yaml"
    with tempfile.TemporaryDirectory(prefix="simul-bench-") as folder:
        setting = Setting(
            node=find_node().path, cores=allowed_cores(), config_path=path, overrides=PURE_SELF_PLAY,
            config=load_config(path, PURE_SELF_PLAY), seconds=seconds, warm_up_sec=4.0, quick=False,
            temporary=Path(folder), say=_say,
        )  # fmt: skip
        return dict(Training(setting).measure(0).notes["us_by_process"])


def validate(measured: Measured) -> list[Promise]:
    """Step 2: rates of one and two real servers beside the model's, on each route that was measured."""
    rows = []
    promises = []
    for cell in measured.held_out:
        times = measured.routes[cell.route]
        model = simulate_stand(times, cell.servers, cell.clients, cell.rows, measured.row_bytes)
        name = f"{cell.route}: {cell.servers} server(s), {cell.clients} x {cell.rows}"
        ratio = model.actions_per_sec / cell.actions_per_sec
        promises.append(Promise(f"{name}: rate of the model off by", abs(ratio - 1), WITHIN, at_least=False))
        rows.append([
            name, f"{cell.actions_per_sec:,.0f}", f"{model.actions_per_sec:,.0f}", f"{ratio:.2f}",
            f"{cell.mean_batch:.0f}", f"{model.mean_batch:.0f}", f"{cell.p50_us / 1e3:.1f}",
            f"{model.p50_us / 1e3:.1f}", promises[-1].verdict,
        ])  # fmt: skip
    heads = (
        "clients x rows",
        "measured/s",
        "simulated/s",
        "ratio",
        "batch",
        "simulated",
        "p50 ms",
        "simulated",
        "within 15%",
    )
    sys.stdout.write(f"\n{markdown_table(heads, rows)}\n")
    return promises


def times_table(measured: Measured) -> str:
    """Service times by route, as a Markdown table."""
    names = ServiceTimes.__struct_fields__
    rows = [[name, *(f"{getattr(times, name):.1f}" for times in measured.routes.values())] for name in names]
    worst = [f"{max(measured.error[name].values()):.0%}" if name in measured.error else "" for name in measured.routes]
    pings = [f"{sum(measured.ping_us.get(route, {}).values()):.0f}" for route in measured.routes]
    rows += [["greatest error of the fit", *worst], ["one PING", *(us if us != "0" else "" for us in pings)]]
    training = ", ".join(f"{name} {us:.0f}" for name, us in measured.training_us.items())
    return markdown_table(("us", *measured.routes), rows) + (
        f"\n\n`simul up`, us a decision: {training}" * bool(training)
    )


def _no_times(why: str) -> int:
    sys.stderr.write(f"{why}. Expected service times as `make bench-scale` or --step measure writes them.\n")
    return 2


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _write(path: Path, measured: Measured) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, msgspec.to_builtins(measured))
