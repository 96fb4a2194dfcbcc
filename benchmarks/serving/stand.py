"""The processes of one measurement: a real server on its own cores, all others on the remaining ones."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.harness.cores import pin
from benchmarks.harness.processes import Child, MeasurementFailed, last_lines, start, stop
from benchmarks.serving.policy import NETWORK, SPEC, served
from benchmarks.serving.sink import past_selves
from benchmarks.serving.stall import Stall, stall
from simul.common.config.schema import Config, NetworkConfig
from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import TO_SUPERVISOR, Report
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.transport import Poller, PullSocket

READY_SEC = 600.0  # also on cores that others use
WARM_UP_SEC = 0.5


@dataclass
class Cell:
    """Settings of one window."""

    precision: str = "float32"
    clients: int = 4
    envs: int = 32
    record: bool = False
    swaps_per_sec: float = 0.0
    past: int = 0  # frozen policies beside the learner's; the envs are spread over them
    trips: bool = False


@dataclass
class Found:
    """What one window found. cpu_us: the server's processor time an action; stage_us: by stage, waiting included."""

    actions_per_sec: float
    cpu_us: float
    p50_us: float
    p99_us: float
    mean_batch: float
    stage_us: dict[str, float] = field(default_factory=dict)
    rss_bytes: int = 0
    stall: Stall | None = None  # of cells with swaps and trips


class ServedRun:
    """A server with a run directory of its own, and its learner's stand-in.

    Attributes:
        run_dir: of the run.
    """

    def __init__(
        self, folder: Path, config: Config, spec: GameSpec, cores: Sequence[int], server_cores: int = 1
    ) -> None:  # fmt: skip
        """The server runs on the first `server_cores` cores, the stand-in on the last one."""
        self._others = cores[server_cores:]
        self.run_dir = RunDir(folder)
        self.run_dir.create()
        self.run_dir.write_config(config)
        self.run_dir.write_spec(spec)
        self._status = PullSocket(self.run_dir.endpoint("status"))
        self._codec: Codec[Report] = Codec(TO_SUPERVISOR)
        self._latest: list[Report] = []
        self._log = self.run_dir.logs / "bench.log"
        self._sink = Child("benchmarks.serving.sink", [str(self.run_dir.root)], self._log, core=self._others[-1])
        self._sink.wait_ready()
        self._server_log = (self.run_dir.logs / "server.log").open("ab")
        command = [sys.executable, "-P", "-m", "simul.inference_server", "--run-dir", str(self.run_dir.root)]
        self._server = start(command, self._server_log)
        pin(self._server.pid, *cores[:server_cores])
        try:
            self._wait_ready()
        except BaseException:
            self.close()
            raise

    def _wait_ready(self) -> None:
        """Raises MeasurementFailed."""
        deadline = time.monotonic() + READY_SEC
        while not any(report.state == "ready" for report in self.reports(0.1)):
            if time.monotonic() > deadline or self._server.poll() is not None:
                log = last_lines(self.run_dir.logs / "server.log")
                raise MeasurementFailed(f"the server did not become ready; the end of its log:\n{log}")

    def reports(self, wait_sec: float) -> list[Report]:
        """The server's reports of the next `wait_sec`."""
        poller, until, reports = Poller([self._status]), time.monotonic() + wait_sec, []
        while (left := until - time.monotonic()) > 0:
            poller.wait(left)
            while (frames := self._status.receive()) is not None:
                reports.append(self._codec.decode(frames)[0])
        self._latest = reports[-1:] or self._latest
        return reports

    def cpu_seconds(self) -> float:
        """Processor time of the server so far."""
        times = psutil.Process(self._server.pid).cpu_times()
        return float(times.user + times.system)

    def close(self) -> None:
        """Stop everything."""
        stop(self._server)
        self._sink.close()
        self._status.close()
        self._server_log.close()


class Stand(ServedRun):
    """A server of one precision, and closed-loop clients."""

    def __init__(
        self, folder: Path, precision: str, cores: Sequence[int], server_cores: int = 1,
        network: NetworkConfig = NETWORK, **server: Any,
    ) -> None:  # fmt: skip
        super().__init__(folder, served(precision, network=network, **server), SPEC, cores, server_cores)

    def measure(self, cell: Cell, seconds: float) -> Found:
        """One window of closed-loop clients."""
        self._order(0.0, cell.past)
        self._wait_for(cell.past)
        clients = [self.client(cell, i) for i in range(cell.clients)]
        try:
            for client in clients:
                client.wait_ready()
            self._order(cell.swaps_per_sec, cell.past)
            begin = time.monotonic() + WARM_UP_SEC
            for client in clients:
                client.tell(begin=begin, end=begin + seconds)
            reports = [*self._latest, *self.reports(WARM_UP_SEC)]
            cpu = self.cpu_seconds()
            inside = self.reports(seconds)
            cpu = self.cpu_seconds() - cpu
            results = [client.result() for client in clients]
            published = self._order(0.0, 0)
        finally:
            for client in clients:
                client.close()
        if len(inside) < 2:  # a window shorter than the time between reports
            inside = [*reports, *inside]
        rss = psutil.Process(self._server.pid).memory_info().rss
        rate = sum(result["decisions"] / result["seconds"] for result in results)
        return Found(
            rate,
            cpu * 1e6 / (rate * seconds),
            max(result["p50"] for result in results),
            max(result["p99"] for result in results),
            *_batches(inside[0].metrics, inside[-1].metrics),
            rss,
            _stall(cell, results, published),
        )

    def client(self, cell: Cell, index: int, *, dry: bool = False) -> Child:
        """A client process on one of the other cores."""
        arguments = ["--run-dir", str(self.run_dir.root), "--name", f"client-{index}", "--envs", str(cell.envs)]
        arguments += ["--record"] * cell.record + ["--dry"] * dry + ["--trips"] * cell.trips
        arguments += ["--policies", "learner", *past_selves(cell.past)]
        return Child("benchmarks.serving.client", arguments, self._log, core=self._others[index % len(self._others)])

    def runner(self) -> str:
        """How the server says that its batches run."""
        return str(self._latest[-1].metrics["runners"]["learner"])

    def _order(self, swaps_per_sec: float, past: int) -> list[float]:
        """Send an order to the learner's stand-in. Returns when weights were published since the last one."""
        self._sink.tell(swaps_per_sec=swaps_per_sec, past=past)
        published: list[float] = self._sink.result()["published"]
        return published

    def _wait_for(self, past: int) -> None:
        deadline = time.monotonic() + READY_SEC
        while past and not set(past_selves(past)) <= self._latest[-1].metrics["policies"].keys():
            self.reports(0.1)
            if time.monotonic() > deadline:
                raise RuntimeError(f"the past selves were not taken; see {self.run_dir.logs}")


def _stall(cell: Cell, results: list[Any], published: list[float]) -> Stall | None:
    if not (cell.trips and cell.swaps_per_sec):
        return None
    trips = [(at, seconds) for result in results for at, seconds in result["trips"]]
    return stall(trips, published, 1 / cell.swaps_per_sec)


def _batches(first: dict[str, Any], last: dict[str, Any]) -> tuple[float, dict[str, float]]:
    """Mean batch and stages between two reports of one server."""
    decisions = max(1, last["decisions"] - first["decisions"])
    stages = {
        name: round((us * last["decisions"] - first["stage_us"][name] * first["decisions"]) / decisions, 3)
        for name, us in last["stage_us"].items()
    }
    return decisions / max(1, last["batches"] - first["batches"]), stages
