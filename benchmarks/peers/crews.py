"""Who is compared: a server on one core and its clients on the other, or clients alone; the same windows for all."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.cores import family_seconds
from benchmarks.harness.processes import Child
from benchmarks.peers.promises import Window
from benchmarks.serving.stand import WARM_UP_SEC
from simul.common.runtime.installation import ROOT

CLIENTS = 4
ENVS = 32  # of one client, where the peers are compared
LISTEN_SEC = 180.0
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"


@dataclass(frozen=True)
class Place:
    """Where a crew is put up: cores = (the server's, the clients'); `folder` takes logs and sockets."""

    precision: str
    cores: tuple[int, int]
    folder: Path

    def child(self, module: str, arguments: list[str], core: int, *, peers: bool = False) -> Child:
        """A process of this package; `peers`: with the environment that holds mosec and TorchRL."""
        more = {"python": str(PEERS_PYTHON)} if peers else {}
        return Child(f"benchmarks.peers.{module}", arguments, self.folder / f"{module}.log", core=core, **more)


class Crew:
    """Running processes. Players obey `closed_loop.obey`; processor time is that of `workers` and what they started."""

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


def _crew(put_up: Callable[[ExitStack], tuple[Sequence[Child], Sequence[int]]]) -> Crew:
    """A crew of ready players; stops what it has started where one of them fails."""
    with ExitStack() as stack:
        players, workers = put_up(stack)
        for player in players:
            player.wait_ready()
        return Crew(stack.pop_all(), players, workers)


def _players(stack: ExitStack, place: Place, module: str, arguments: list[str], cores: Sequence[int]) -> list[Child]:
    players = []
    for number in range(CLIENTS):
        players.append(place.child(module, arguments, cores[number % len(cores)]))
        stack.callback(players[-1].close)
    return players


def mosec(place: Place, *, max_batch: int, max_wait_ms: int) -> Crew:
    """mosec with its worker and its HTTP front on the server's core; `max_batch` in requests."""

    def put_up(stack: ExitStack) -> tuple[list[Child], list[int]]:
        port = _free_port()
        arguments = ["--address", "127.0.0.1", "--port", str(port), "--log-level", "warning"]
        arguments += ["--core", str(place.cores[0]), "--precision", place.precision]
        arguments += ["--max-batch", str(max_batch), "--max-wait-ms", str(max_wait_ms)]
        server = place.child("mosec_server", arguments, place.cores[0], peers=True)
        stack.callback(server.close)
        wait_until_it_listens(server.process, port, place.folder / "mosec_server.log")
        return _players(stack, place, "mosec_client", [str(port)], place.cores[1:]), [server.process.pid]

    return _crew(put_up)


def torchrl(place: Place, **setting: Any) -> Crew:
    """TorchRL's process server; `setting` as `torchrl_stand` takes it. One player speaks for all clients."""
    setting |= {"precision": place.precision, "clients": CLIENTS, "envs": ENVS}
    setting |= {"server_core": place.cores[0], "client_core": place.cores[1]}
    with ExitStack() as stack:
        stand = place.child("torchrl_stand", [json.dumps(setting)], place.cores[0], peers=True)
        stack.callback(stand.close)
        stand.wait_ready()
        return Crew(stack.pop_all(), [stand], [stand.result()["server_pid"]])


def plain(place: Place) -> Crew:
    """The plain ZeroMQ loop, state on the server."""

    def put_up(stack: ExitStack) -> tuple[list[Child], list[int]]:
        endpoint = f"ipc://{place.folder}/plain"
        server = place.child("plain_loop", [endpoint, place.precision], place.cores[0])
        stack.callback(server.close)
        server.wait_ready()
        return _players(stack, place, "plain_client", [endpoint], place.cores[1:]), [server.process.pid]

    return _crew(put_up)


def local(place: Place) -> Crew:
    """Clients that run the policy themselves, on both cores: nobody else needs one."""

    def put_up(stack: ExitStack) -> tuple[list[Child], list[int]]:
        players = _players(stack, place, "local_client", [place.precision], place.cores)
        return players, [player.process.pid for player in players]

    return _crew(put_up)


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
