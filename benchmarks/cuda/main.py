"""`make bench-cuda`: on a GPU, the engine alone and the server with local clients, found against promised."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.cuda.alone import build_engine, measure
from benchmarks.harness.promises import Promise
from benchmarks.harness.report import conditions, write_json
from benchmarks.serving.policy import PRECISIONS
from benchmarks.serving.stand import Cell, Found, Stand
from simul.inference_server.engine.graphs import GRAPH_BUCKETS
from simul.launch.loadtest.cores import allowed_cores

FEW = 64  # envs at which latency is promised
FEW_CELLS = ((1, 64), (4, 16))
ALONE_SEC = 0.05  # one window of one batch size
MOST_CLIENTS = 8
P50_US = 300.0
ACTIONS_PER_SEC = 500_000.0


@dataclass
class Way:
    """One precision, with graphs or without.

    alone: microseconds of a batch, one figure a repeat, by rows. served: one window a repeat, by (clients, envs of
    each). runner: how the server said that its batches ran.
    """

    precision: str
    graphs: bool
    alone: dict[int, list[float]] = field(default_factory=dict)
    served: dict[tuple[int, int], list[Found]] = field(default_factory=dict)
    runner: str = ""

    def __str__(self) -> str:
        return f"{self.precision} {'with' if self.graphs else 'without'} graphs"

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        served = {f"{clients} x {envs}": [asdict(f) for f in found] for (clients, envs), found in self.served.items()}
        return {**asdict(self), "served": served}


def main() -> int:
    """Exit code 0 when every promise is kept, 1 when not, 2 without a GPU; other devices have no promises: 0."""
    options = _options()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.stderr.write("Nothing was measured: torch finds no CUDA device here (--device cpu tries the script).\n")
        return 2
    torch.set_num_threads(1)
    ways = [
        Way(precision, graphs)
        for precision in options.precision or PRECISIONS
        for graphs in ((True, False) if options.device == "cuda" else (False,))
    ]
    cores = allowed_cores()
    others = cores[_server_cores(cores) :] or cores
    clients = min(MOST_CLIENTS, len(others))
    cells = (*FEW_CELLS, (clients, options.many // clients))
    _measure_alone(ways, options)
    for way in ways:
        _measure_served(way, cells, cores, options)
    found = promises(ways, FEW, clients * (options.many // clients))
    sys.stdout.write(tables(ways) + "".join(f"{line}\n" for line in found))
    if options.json:
        report = {
            "conditions": _conditions(options, len(cores)),
            "ways": [way.as_dict() for way in ways],
            "lines": [line.as_dict() for line in found],
        }
        write_json(options.json, report)
    return 0 if all(line.kept for line in found) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="cpu: tries the script, without graphs"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one window over clients")
    parser.add_argument("--many", type=int, default=4096, metavar="ENVS", help="envs at which throughput is promised")
    parser.add_argument(
        "--max-batch", type=int, default=1024, help="the server's; the engine alone goes up to ENVS rows"
    )
    parser.add_argument("--precision", choices=PRECISIONS, action="append", help="default: both")
    parser.add_argument("--json", type=Path, metavar="F", help="write what was found to F")
    return parser.parse_args()


def _measure_alone(ways: list[Way], options: argparse.Namespace) -> None:
    """Every repeat measures all ways in turn, so that a slow minute of the machine affects all alike."""
    sizes = [size for size in GRAPH_BUCKETS if size <= options.many]
    engines = [
        build_engine(options.device, way.precision, graphs=way.graphs, sessions=options.many, max_batch=options.many)
        for way in ways
    ]
    for number in range(options.repeats):
        sys.stderr.write(f"the engine alone: round {number + 1} of {options.repeats}\n")
        for way, engine in zip(ways, engines):
            for size, us in measure(engine, sizes, ALONE_SEC).items():
                way.alone.setdefault(size, []).append(us)


def _measure_served(
    way: Way, cells: tuple[tuple[int, int], ...], cores: list[int], options: argparse.Namespace
) -> None:
    with tempfile.TemporaryDirectory(prefix="simul-bench-") as folder:
        stand = Stand(
            Path(folder), way.precision, cores if len(cores) > 1 else cores * 2, _server_cores(cores),
            device=options.device, cuda_graphs=way.graphs,
            max_batch=options.max_batch, max_sessions=max(FEW, options.many),
        )  # fmt: skip
        try:
            way.runner = stand.runner()
            if way.graphs and not way.runner.endswith(" graphs"):
                raise RuntimeError(f"the server has no graphs: {way.runner}")
            for number in range(options.repeats):
                sys.stderr.write(f"{way}: round {number + 1} of {options.repeats}\n")
                for clients, envs in cells:
                    found = stand.measure(Cell(way.precision, clients=clients, envs=envs), options.seconds)
                    way.served.setdefault((clients, envs), []).append(found)
        finally:
            stand.close()


def _server_cores(cores: list[int]) -> int:
    """Two (the loop and zmq's thread) of four cores or more, else one."""
    return 2 if len(cores) >= 4 else 1


def _conditions(options: argparse.Namespace, cores: int) -> dict[str, object]:
    name = torch.cuda.get_device_name() if options.device == "cuda" else options.device
    wanted = {key: value for key, value in vars(options).items() if key != "json"}
    return conditions(device_name=name, torch=torch.__version__, cores_used=cores, **wanted)


def promises(ways: Sequence[Way], few: int, many: int) -> list[Promise]:
    """The promises: latency at `few` envs over the best split among clients, throughput at `many`, with graphs."""
    result = []
    for way in ways:
        if not way.graphs:
            continue
        p50, clients, envs = min((_middle(found, "p50_us"), *cell) for cell, found in _cells(way, few).items())
        result.append(Promise(f"{way}, {clients} x {envs} envs: round trip p50, us", p50, P50_US, at_least=False))
        served = max(_middle(found, "actions_per_sec") for found in _cells(way, many).values())
        rows, alone = max(_rates(way.alone).items())
        result.append(
            Promise(
                f"{way}, actions/s: {served:.0f} of {many} envs over clients, {alone:.0f} of {rows} rows alone",
                max(served, alone),
                ACTIONS_PER_SEC,
            )
        )
    return result


def tables(ways: Sequence[Way]) -> str:
    """Tables of medians and spreads: the engine alone by rows of a batch, then what clients saw."""
    out = ["the engine alone, staged inputs to answers on the host: us a batch (least to most), actions/s"]
    for rows in sorted({rows for way in ways for rows in way.alone}):
        out.append(f"{rows:5d} rows")
        for way in (way for way in ways if rows in way.alone):
            us = way.alone[rows]
            out.append(
                f"    {way!s:24s} {median(us):9.1f} ({min(us):.1f} to {max(us):.1f}) {rows / median(us) * 1e6:12.0f}"
            )
    out.append(
        "\nover local clients: actions/s (least to most), p50 us, p99 us, rows a batch, server's processor us/action"
    )
    for way in ways:
        out.append(f"{way} (the server: {way.runner})")
        for (clients, envs), found in way.served.items():
            rates = [f.actions_per_sec for f in found]
            out.append(
                f"    {clients:2d} x {envs:4d} {median(rates):10.0f} ({min(rates):.0f} to {max(rates):.0f}) "
                + " ".join(f"{_middle(found, name):9.1f}" for name in ("p50_us", "p99_us", "mean_batch", "cpu_us"))
            )
            out.append(f"         us/action by stage: {_stages(found)}")
    return "\n".join(out) + "\n"


def _cells(way: Way, envs: int) -> dict[tuple[int, int], list[Found]]:
    return {cell: found for cell, found in way.served.items() if cell[0] * cell[1] == envs}


def _rates(alone: Mapping[int, Sequence[float]]) -> dict[int, float]:
    """Actions a second by rows of a batch."""
    return {rows: rows / median(us) * 1e6 for rows, us in alone.items()}


def _middle(found: Sequence[Found], name: str) -> float:
    return float(median(getattr(f, name) for f in found))


def _stages(found: Sequence[Found]) -> dict[str, float]:
    return {name: median(f.stage_us[name] for f in found) for name in found[0].stage_us}
