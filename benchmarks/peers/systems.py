"""The systems compared: a server on one core with clients on the other, or clients alone; and the peers' settings."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.cores import family_seconds
from benchmarks.harness.processes import Child
from benchmarks.serving.stand import WARM_UP_SEC
from simul.common.runtime.installation import ROOT

CLIENTS = 4
ENVS = 32  # of one client, where the peers are compared
LISTEN_SEC = 180.0
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"


@dataclass(frozen=True)
class Window:
    """What one window found.

    cpu_us: processor time an action, of the server (local: of the clients). checked: see `closed_loop.measure`, one sum
    a client, those that got so far.
    """

    actions_per_sec: float
    cpu_us: float
    p50_us: float
    p99_us: float
    mean_batch: float
    checked: tuple[float, ...] = ()


@dataclass(frozen=True)
class Placement:
    """Where a system runs: cores = (the server's, the clients'); `folder` holds logs and sockets."""

    precision: str
    cores: tuple[int, int]
    folder: Path

    def child(self, module: str, arguments: list[str], core: int, *, peers: bool = False) -> Child:
        """A process of this package; `peers`: with the environment that holds mosec and TorchRL."""
        more = {"python": str(PEERS_PYTHON)} if peers else {}
        return Child(f"benchmarks.peers.{module}", arguments, self.folder / f"{module}.log", core=core, **more)


class System:
    """Running processes. Players run `closed_loop.run_orders`; processor time: of `workers` and their descendants."""

    def __init__(self, stack: ExitStack, players: Sequence[Child], workers: Sequence[int]) -> None:
        self._stack = stack
        self._players = players
        self._workers = workers

    def measure(self, seconds: float, envs: int = ENVS) -> Window:
        """One window of every client with `envs` envs."""
        begin = time.monotonic() + WARM_UP_SEC
        for player in self._players:
            player.tell(envs=envs, begin=begin, end=begin + seconds)
        _sleep_until(begin)
        cpu = family_seconds(self._workers)
        _sleep_until(begin + seconds)
        cpu = family_seconds(self._workers) - cpu
        results = [result for player in self._players for result in player.result()]
        rate = sum(result["decisions"] / result["seconds"] for result in results)
        return Window(
            rate,
            cpu * 1e6 / (rate * seconds),
            max(result["p50"] for result in results),
            max(result["p99"] for result in results),
            sum(result["decisions"] for result in results) / max(1.0, sum(result["batches"] for result in results)),
            tuple(result["checked"] for result in results if result["checked"]),
        )

    def close(self) -> None:
        """Stop everything."""
        self._stack.close()


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _system(start: Callable[[ExitStack], tuple[Sequence[Child], Sequence[int]]]) -> System:
    """A system whose players are ready; stops what it has started where one of them fails."""
    with ExitStack() as stack:
        players, workers = start(stack)
        for player in players:
            player.wait_ready()
        return System(stack.pop_all(), players, workers)


def _players(
    stack: ExitStack, placement: Placement, module: str, arguments: list[str], cores: Sequence[int]
) -> list[Child]:
    players = []
    for number in range(CLIENTS):
        players.append(placement.child(module, arguments, cores[number % len(cores)]))
        stack.callback(players[-1].close)
    return players


def mosec(placement: Placement, *, max_batch: int, max_wait_ms: int) -> System:
    """mosec with its worker and its HTTP front on the server's core; `max_batch` in requests."""

    def start(stack: ExitStack) -> tuple[list[Child], list[int]]:
        port = _free_port()
        arguments = ["--address", "127.0.0.1", "--port", str(port), "--log-level", "warning"]
        arguments += ["--core", str(placement.cores[0]), "--precision", placement.precision]
        arguments += ["--max-batch", str(max_batch), "--max-wait-ms", str(max_wait_ms)]
        server = placement.child("mosec_server", arguments, placement.cores[0], peers=True)
        stack.callback(server.close)
        wait_until_it_listens(server.process, port, placement.folder / "mosec_server.log")
        return _players(stack, placement, "mosec_client", [str(port)], placement.cores[1:]), [server.process.pid]

    return _system(start)


def torchrl(placement: Placement, **setting: Any) -> System:
    """TorchRL's process server; `setting` as `torchrl_stand` takes it. One process answers for all clients."""
    setting |= {"precision": placement.precision, "clients": CLIENTS, "envs": ENVS}
    setting |= {"server_core": placement.cores[0], "client_core": placement.cores[1]}
    with ExitStack() as stack:
        stand = placement.child("torchrl_stand", [json.dumps(setting)], placement.cores[0], peers=True)
        stack.callback(stand.close)
        stand.wait_ready()
        return System(stack.pop_all(), [stand], [stand.result()["server_pid"]])


def plain(placement: Placement) -> System:
    """The plain ZeroMQ loop, state on the server."""

    def start(stack: ExitStack) -> tuple[list[Child], list[int]]:
        endpoint = f"ipc://{placement.folder}/plain"
        server = placement.child("plain_loop", [endpoint, placement.precision], placement.cores[0])
        stack.callback(server.close)
        server.wait_ready()
        return _players(stack, placement, "plain_client", [endpoint], placement.cores[1:]), [server.process.pid]

    return _system(start)


def local(placement: Placement) -> System:
    """Clients that run the policy themselves, on both cores."""

    def start(stack: ExitStack) -> tuple[list[Child], list[int]]:
        players = _players(stack, placement, "local_client", [placement.precision], placement.cores)
        return players, [player.process.pid for player in players]

    return _system(start)


def wait_until_it_listens(server: subprocess.Popen[bytes], port: int, log: Path, limit_sec: float = LISTEN_SEC) -> None:
    """mosec listens when its worker is ready, which takes a minute where the core is shared.

    Raises RuntimeError with the server's last words where it ends instead, or takes longer than `limit_sec`.
    """
    deadline = time.monotonic() + limit_sec
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
            return
        except OSError:
            ended = server.poll()
        if ended is not None or time.monotonic() > deadline:
            what = f"did not listen within {limit_sec:.0f} s" if ended is None else f"ended with {ended}"
            words = "\n".join(log.read_text(errors="replace").splitlines()[-12:]) or "(it wrote nothing)"
            raise RuntimeError(f"mosec {what}; its last words:\n{words}")
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Tuned:
    """The setting with the most actions a second, and those of each that was tried."""

    best: Setting
    tried: Mapping[str, float]


# name: how it is put up, and its candidates
CANDIDATES: dict[str, tuple[Callable[..., System], tuple[Setting, ...]]] = {
    "mosec": (
        mosec,
        (
            {"max_batch": CLIENTS, "max_wait_ms": 1},  # a whole millisecond is the least that mosec takes
            {"max_batch": CLIENTS // 2, "max_wait_ms": 1},
            {"max_batch": 1, "max_wait_ms": 1},
        ),
    ),
    "torchrl": (
        torchrl,
        (
            # process_slot and shared_memory want clients on the same machine, started by the server's owner, that send
            # the same number of envs each time
            {"transport": "process_slot", "min_batch": 1, "timeout": 0.05},
            {"transport": "process_slot", "min_batch": CLIENTS // 2, "timeout": 0.001},
            {"transport": "process_slot", "min_batch": CLIENTS, "timeout": 0.002},
            {"transport": "shared_memory", "min_batch": 1, "timeout": 0.05},
            {"transport": "auto", "min_batch": 1, "timeout": 0.05},  # TorchRL's default: pickled requests
        ),
    ),
}


def tune(name: str, placement: Placement, seconds: float, most: int) -> Tuned:
    """One window for each of the first `most` candidates."""
    start, candidates = CANDIDATES[name]
    candidates = candidates[:most]
    found: list[float] = []
    for setting in candidates:
        sys.stderr.write(f"{placement.precision}: {name} with {describe(setting)}\n")
        system = start(placement, **setting)
        try:
            found.append(system.measure(seconds).actions_per_sec)
        finally:
            system.close()
    best = candidates[found.index(max(found))]
    return Tuned(best, {describe(setting): rate for setting, rate in zip(candidates, found)})


def describe(setting: Setting) -> str:
    """`name value, ...`"""
    return ", ".join(f"{name} {value}" for name, value in setting.items())
