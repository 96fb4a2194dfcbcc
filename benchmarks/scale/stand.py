"""Real servers and closed-loop clients on two cores, and the processor time of every thread of theirs. Linux only."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psutil

from benchmarks.harness.cores import two_cores
from benchmarks.harness.processes import Child, MeasurementFailed
from benchmarks.scale.times import Window
from benchmarks.serving.policy import served
from benchmarks.serving.stand import WARM_UP_SEC, ServedRun
from simul.common.protocol.specs import GameSpec
from simul.common.transport import new_keys
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from simul.env_worker.games.pokemon.tables.layout import OBSERVATION_SIZE
from simul.inference_server.frontend.status_reply import STEP_ROW_BYTES

# Rows as large as those of Pokémon singles; the network is `mlp_lstm` of 256 units.
SPEC = GameSpec(
    name="bench/scale", observation_size=OBSERVATION_SIZE, num_actions=26, observation_dtype="float16"
)  # fmt: skip
PRECISION = "bfloat16"
ROW_BYTES = SPEC.observation_size * SPEC.dtype().itemsize + SPEC.num_actions + STEP_ROW_BYTES  # of STEP
IDLE_CLIENTS = 200
WAITING = ("wait", "batch_wait", "learner_full")  # stages of the loop in which it does nothing


class Route(NamedTuple):
    """How messages reach the server.

    Attributes:
        proxy: over tcp and through the proxy, as from other machines; False: the socket for the run's own processes.
        memory: observations and unrolls are in shared memory; False: they go through sockets.
        curve: messages are encrypted.
    """

    proxy: bool
    memory: bool
    curve: bool


ROUTES = {
    "memory": Route(proxy=False, memory=True, curve=False),
    "socket": Route(proxy=False, memory=False, curve=False),
    "socket, CURVE": Route(proxy=False, memory=False, curve=True),
    "proxy": Route(proxy=True, memory=False, curve=False),
    "proxy, CURVE": Route(proxy=True, memory=False, curve=True),
}


class Reading(NamedTuple):
    """A report of the server, and processor time at its arrival in us."""

    at: float
    metrics: dict[str, Any]
    loop_us: float
    io_us: float
    proxy_us: float


class ScaleStand(ServedRun):
    """One server on the first of `cores`; its proxy is there too. Clients run on the last core."""

    def __init__(self, folder: Path, route: str, cores: Sequence[int]) -> None:
        self.route = route
        settings = ROUTES[route]
        self._keys = folder.with_name(f"{folder.name}-keys") if settings.curve else None
        if self._keys is not None:
            new_keys(self._keys)
        self._endpoint = f"tcp://127.0.0.1:{free_port()}" if settings.proxy else ""
        config = served(
            PRECISION, endpoint=self._endpoint, shared_memory=settings.memory,
            curve_keys="" if self._keys is None else str(self._keys),
        )  # fmt: skip
        super().__init__(folder, config, SPEC, cores)

    def clients(self, count: int, rows: int, recorded: bool) -> list[Child]:
        """Clients that connect, and wait for their window."""
        arguments = ["--envs", str(rows), *["--record"] * recorded]
        return [self._child("benchmarks.serving.client", f"client-{i}", arguments) for i in range(count)]

    def idle_clients(self, count: int) -> Child:
        """A process with `count` connections that only PING."""
        return self._child("benchmarks.scale.idle", "idle", ["--count", str(count)])

    def readings(self, wait_sec: float) -> list[Reading]:
        """A reading for each report of the next `wait_sec`."""
        pid = self._server.pid
        return [
            Reading(time.monotonic(), report.metrics, *thread_us(pid), _children_us(pid))
            for report in self.reports(wait_sec)
        ]

    def _child(self, module: str, name: str, arguments: list[str]) -> Child:
        arguments = ["--run-dir", str(self.run_dir.root), "--name", name, *arguments]
        arguments += ["--endpoint", self._endpoint] * bool(self._endpoint)
        if self._keys is not None:
            arguments += ["--keys", str(self._keys)]
        return Child(module, arguments, self._log, core=self._others[-1])


@contextmanager
def stands(route: str, count: int = 1) -> Iterator[list[ScaleStand]]:
    """`count` servers (1 or 2): server i on core i of two, and its clients on the other core."""
    if not Path("/proc/self/schedstat").exists():
        raise MeasurementFailed("processor time of threads is read from /proc/PID/schedstat: run this on Linux.")
    cores = two_cores()
    with tempfile.TemporaryDirectory(prefix="simul-bench-") as folder, ExitStack() as stack:
        yield [
            stack.enter_context(closing(ScaleStand(Path(folder) / str(index), route, order)))
            for index, order in enumerate((cores, cores[::-1])[:count])
        ]


def measure(
    servers: Sequence[ScaleStand], clients: int, rows: int, seconds: float, *, recorded: bool = False
) -> list[Window]:  # fmt: skip
    """One window of all servers at once, each with `clients` clients. Raises MeasurementFailed."""
    sys.stderr.write(f"{servers[0].route}: {len(servers)} server(s), {clients} x {rows}\n")
    children = [server.clients(clients, rows, recorded) for server in servers]
    flat = [child for group in children for child in group]
    try:
        for child in flat:
            child.wait_ready()
        begin = time.monotonic() + WARM_UP_SEC
        for child in flat:
            child.tell(begin=begin, end=begin + seconds)
        readings = _readings(servers, begin, seconds)
        results = [[child.result() for child in group] for group in children]
    finally:
        for child in flat:
            child.close()
    return [
        _window(server.route, rows, recorded, inside, found)
        for server, inside, found in zip(servers, readings, results, strict=True)
    ]


def measure_pings(server: ScaleStand, seconds: float, rounds: int) -> dict[str, float]:
    """Processor time of the server for one PING of an idle connection, by thread in us: medians of `rounds`."""
    found: dict[str, list[float]] = {"loop": [], "libzmq": [], "proxy": []}
    for _ in range(rounds):
        server.readings(1.0)
        without = _us_per_sec(server.readings(seconds))
        child = server.idle_clients(IDLE_CLIENTS)
        try:
            child.wait_ready()
            server.readings(1.0)
            pinged = _us_per_sec(server.readings(seconds))
        finally:
            child.close()
        for thread, values in found.items():
            values.append((pinged[thread] - without[thread]) / IDLE_CLIENTS)
    return {thread: round(max(0.0, median(values)), 2) for thread, values in found.items()}


def _us_per_sec(readings: Sequence[Reading]) -> dict[str, float]:
    """Processor time by thread in us, in a second."""
    first, last = readings[0], readings[-1]
    spent = {"loop": last.loop_us - first.loop_us, "libzmq": last.io_us - first.io_us}
    spent["proxy"] = last.proxy_us - first.proxy_us
    return {thread: us / (last.at - first.at) for thread, us in spent.items()}


def thread_us(pid: int) -> tuple[float, float]:
    """Processor time in us of a process's main thread, and of all its libzmq threads."""
    main = io = 0.0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            name, spent = (thread / "comm").read_text(), _us(thread)
        except OSError:  # it has ended
            continue
        if thread.name == str(pid):
            main = spent
        elif name.startswith("ZMQbg/IO"):
            io += spent
    return main, io


def _children_us(pid: int) -> float:
    children = psutil.Process(pid).children(recursive=True)
    return sum(_us(thread) for child in children for thread in Path(f"/proc/{child.pid}/task").iterdir())


def _us(thread: Path) -> float:
    """Its time on a core, of schedstat, which counts nanoseconds; `stat` counts hundredths of a second."""
    return int((thread / "schedstat").read_text().split()[0]) / 1e3


def _readings(servers: Sequence[ScaleStand], begin: float, seconds: float) -> list[list[Reading]]:
    inside: list[list[Reading]] = [[] for _ in servers]
    while (now := time.monotonic()) < begin + seconds:
        for server, readings in zip(servers, inside, strict=True):
            found = server.readings(0.005)
            readings += found if now >= begin else []
    if any(len(readings) < 2 for readings in inside):
        raise MeasurementFailed(f"a server sent fewer than two reports in {seconds:g} s: choose longer --seconds.")
    return inside


def _window(
    route: str, rows: int, recorded: bool, readings: Sequence[Reading], found: Sequence[dict[str, Any]]
) -> Window:  # fmt: skip
    first, last = readings[0], readings[-1]
    stages = {name: sec - first.metrics["stage_sec"][name] for name, sec in last.metrics["stage_sec"].items()}
    worked_sec = sum(seconds for name, seconds in stages.items() if name not in WAITING)
    loop_us = last.loop_us - first.loop_us
    counts = {name: last.metrics[name] - first.metrics[name] for name in ("messages", "decisions", "batches")}
    return Window(
        route=route, clients=len(found), rows=rows, recorded=recorded, seconds=last.at - first.at, **counts,
        loop_us=loop_us, io_us=last.io_us - first.io_us, proxy_us=last.proxy_us - first.proxy_us,
        forward_us=loop_us * stages["forward"] / worked_sec,
        client_seconds=max(client["seconds"] for client in found),
        client_messages=sum(client["messages"] for client in found),
        client_decisions=sum(client["decisions"] for client in found),
        client_us=sum(client["cpu_sec"] for client in found) * 1e6,
        client_io_us=sum(client["io_cpu_sec"] for client in found) * 1e6,
        p50_us=max(client["p50"] for client in found),
    )  # fmt: skip
