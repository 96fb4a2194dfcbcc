"""`make bench-search`: Blokus Duo searched in four ways, with the same network, searches and cores.

Sequential: one process plays one game after the other, a forward for each leaf. Hybrid: a process on each core, with a
network of its own. A CUDA context a worker: the same, with each network on the GPU. And our server on one core, with
search workers on the others. All play with configs/blokus.yaml by `env_worker/search`; only who evaluates differs.
Nothing is learned meanwhile, and samples are discarded. Windows are interleaved; the first one of each way is not
counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from math import nan
from pathlib import Path
from typing import Any

import psutil
import torch

from benchmarks.harness.processes import Child
from benchmarks.harness.promises import promises_table
from benchmarks.harness.report import conditions, in_one_line, write_json
from benchmarks.search.results import (
    GPU_WAYS,
    HYBRID,
    SERVER,
    TITLES,
    Repeat,
    Window,
    against_hybrid,
    promises,
    table,
)
from benchmarks.serving.stand import WARM_UP_SEC, ServedRun
from simul.common.config.loader import load_config
from simul.common.config.schema import Config
from simul.env_worker.games.loading import game_spec
from simul.launch.loadtest.cores import allowed_cores

PATIENT_SEC = 3600.0  # no client is gone because other windows are measured
NO_GPU = "not run: no GPU"
STANDS = "simul-search-"


class Stands:
    """All processes of the comparison; each waits while another way is measured.

    Args:
        cores: the server's, then the workers'.
    """

    def __init__(self, stack: ExitStack, folder: Path, config: Config, cores: Sequence[int], device: str) -> None:
        self._stack = stack
        self._cores = cores
        self._device = device
        self._precision = config.server.precision
        self.served = ServedRun(folder / "run", config, game_spec(config), cores)
        stack.callback(self.served.close)
        self._root = str(self.served.run_dir.root)
        self._log = folder / "players.log"
        each = range(len(cores))
        self._players = {
            "alone1": [self._player(0, None, "network", "--alone")],
            "alone2": [self._player(0, None, "network", "--alone", "--threads", "2")],
            HYBRID: [self._player(i, cores[i], "network", "--alone") for i in each],
            SERVER: [self._player(i, core, "server") for i, core in enumerate(cores[1:])],
        }
        if device == "cuda":
            self._players["alone_cuda"] = [self._player(0, None, "network", "--alone", "--device", "cuda")]
            self._players["contexts"] = [
                self._player(i, cores[i], "network", "--alone", "--device", "cuda") for i in each
            ]
        self._load = [self._player(i, core, "uniform") for i, core in enumerate(cores[1:])]
        self._bare = Child("benchmarks.serving.bare", [self._root], self._log, core=cores[0])
        stack.callback(self._bare.close)
        for child in (*(child for each in self._players.values() for child in each), *self._load, self._bare):
            child.wait_ready()

    @property
    def ways(self) -> list[str]:
        """Names of what can be measured."""
        return [name for name in TITLES if name in self._players]

    def measure(self, name: str, seconds: float) -> Window:
        """One window of one way."""
        begin = time.monotonic() + WARM_UP_SEC
        for player in self._players[name]:
            player.tell(begin=begin, end=begin + seconds)
        reports = self.served.reports(WARM_UP_SEC)
        server_cpu = self.served.cpu_seconds()
        reports += self.served.reports(seconds)
        server_cpu = self.served.cpu_seconds() - server_cpu
        results = [player.result() for player in self._players[name]]
        counts = {key: sum(result[key] for result in results) for key in results[0] if key != "lengths"}
        evaluations, cpu = counts["evaluations"], counts["cpu_sec"]
        window = Window(
            seconds=max(result["seconds"] for result in results), moves=counts["moves"],
            simulations=counts["simulations"], evaluations=evaluations, batches=counts["requests"], cpu_sec=cpu,
            lengths=tuple(length for result in results for length in result["lengths"]),
        )  # fmt: skip
        if name != SERVER:
            return window
        rows, batches = _evaluated([report.metrics for report in reports])
        return replace(
            window, batches=evaluations * batches / rows if rows else counts["requests"], cpu_sec=cpu + server_cpu,
            server_cpu_sec=server_cpu,
        )  # fmt: skip

    def bare(self, batch: int, seconds: float) -> tuple[float, float]:
        """Microseconds of a leaf, by the clock and of processor time, while workers search without a server.

        nan on a GPU: the bare forward runs on the processor.
        """
        if self._device == "cuda":
            return nan, nan
        begin = time.monotonic()
        for player in self._load:
            player.tell(begin=begin, end=begin + seconds)
        self._bare.tell(precision=self._precision, batch=batch, end=begin + seconds)
        found = self._bare.result()
        for player in self._load:
            player.result()
        return found["forward_us"] / batch, found["cpu_us"] / batch

    def _player(self, index: int, core: int | None, evaluator: str, *more: str) -> Child:
        arguments = ["--run-dir", self._root, "--index", str(index), "--evaluator", evaluator, *more]
        child = Child("benchmarks.search.player", arguments, self._log, core=core)
        self._stack.callback(child.close)
        return child


def _evaluated(reports: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Rows and batches of EVALUATE between the first and the last of these reports."""
    if len(reports) < 2:
        return 0, 0
    first, last = reports[0], reports[-1]
    return last["evaluations"] - first["evaluations"], last["evaluation_batches"] - first["evaluation_batches"]


def main() -> int:
    """Exit code 0 when every promise is kept."""
    options = _options()
    device = "cuda" if options.device != "cpu" and torch.cuda.is_available() else "cpu"
    cores = allowed_cores()[: options.cores]
    if len(cores) < options.cores:
        cores = (cores * options.cores)[: options.cores]
    if hasattr(psutil.Process(), "cpu_affinity"):
        psutil.Process().cpu_affinity(sorted(set(cores)))
    settings = [
        f"server.precision={options.precision}", f"server.device={device}",
        f"server.client_timeout_sec={PATIENT_SEC}", *options.set,
    ]  # fmt: skip
    config = load_config("blokus", settings)
    facts = conditions(
        cores_used=len(set(cores)), device=device, precision=options.precision, repeats=options.repeats,
        seconds=options.seconds, simulations=config.search.simulations, games_of_a_worker=config.workers.envs,
    )  # fmt: skip
    repeats: list[Repeat] = []
    with tempfile.TemporaryDirectory(prefix=STANDS) as folder, ExitStack() as stack:
        stands = Stands(stack, Path(folder), config, cores, device)
        for name in stands.ways:  # at first the searches of all games are at the same stage
            sys.stderr.write(f"warm-up: {TITLES[name]}\n")
            stands.measure(name, options.seconds)
        for number in range(options.repeats):
            sys.stderr.write(f"round {number + 1} of {options.repeats}\n")
            repeats.append(_round(stands, number, options.seconds))
    not_run = dict.fromkeys(GPU_WAYS, NO_GPU) if device == "cpu" else {}
    lines = promises(repeats, device == "cpu")
    verdicts = promises_table(lines) if options.markdown else "\n".join(map(str, lines))
    sys.stdout.write(f"{table(repeats, not_run)}\n\n{verdicts}\n\n{against_hybrid(repeats)}\n\n{in_one_line(facts)}\n")
    if options.json:
        report = {"conditions": facts, "repeats": [asdict(each) for each in repeats], "not_run": not_run}
        write_json(options.json, {**report, "lines": [line.as_dict() for line in lines]})
    return 0 if all(line.kept for line in lines) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of one window")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help="of every network")
    parser.add_argument("--device", choices=("auto", "cpu"), default="auto", help="cpu: leave a GPU alone")
    parser.add_argument("--cores", type=int, default=2, help="that all ways use")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="further settings, of all ways")
    parser.add_argument("--markdown", action="store_true", help="print the promises as a table, too")
    parser.add_argument("--json", type=Path, metavar="F", help="write what was found to F")
    options = parser.parse_args()
    if options.repeats < 1 or options.cores < 2:
        parser.error("expected at least one repeat, and two cores: one for the server, one for workers")
    return options


def _round(stands: Stands, number: int, seconds: float) -> Repeat:
    """A window of every way, in another order each round, then the bare forward."""
    ways = stands.ways
    turn = number % len(ways)
    windows = {name: stands.measure(name, seconds) for name in ways[turn:] + ways[:turn]}
    wall, cpu = stands.bare(max(1, round(windows[SERVER].mean_batch)), seconds / 2)
    return Repeat(windows, wall, cpu)


if __name__ == "__main__":
    sys.exit(main())
