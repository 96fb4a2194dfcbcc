"""The start of a worker: a fresh process, from its start to the first decision that it sends, and its memory then."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil

from benchmarks.harness.processes import MeasurementFailed, last_lines, start, stop
from simul.common.config.loader import load_config
from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import TO_SERVER, Evaluate, Step
from simul.common.role.run_directory import RunDir
from simul.common.transport import Poller, RouterSocket
from simul.env_worker.games.loading import game_spec
from simul.inference_server.mock_server import MockServer

LONGEST_SEC = 600.0


def start_worker(config: str, folder: Path, cache: Path) -> dict[str, float]:
    """Start a worker of a shipped configuration beside a server without a network.

    Args:
        cache: numba's; an empty folder: the worker compiles everything.

    Raises:
        MeasurementFailed: the worker ended, or sent no decision.
    """
    run_dir = RunDir(folder)
    run_dir.create()
    settings = load_config(config)
    run_dir.write_config(settings)
    spec = game_spec(settings)
    run_dir.write_spec(spec)
    log = run_dir.logs / "worker.log"
    command = [sys.executable, "-P", "-m", "simul.env_worker", "--run-dir", str(folder)]
    with RouterSocket(run_dir.own_endpoint("")) as socket, log.open("wb") as output:
        began = time.monotonic()
        process = start(command, output, env={"NUMBA_CACHE_DIR": str(cache)})
        try:
            _wait_for_decision(socket, MockServer(spec), process.pid, began + LONGEST_SEC)
            seconds, memory = time.monotonic() - began, psutil.Process(process.pid).memory_info().rss
        except psutil.NoSuchProcess:
            raise MeasurementFailed(f"the worker ended; the end of its log:\n{last_lines(log)}") from None
        finally:
            stop(process)
    return {"s": seconds, "MB": memory / 1e6}


def _wait_for_decision(socket: RouterSocket, server: MockServer, pid: int, deadline: float) -> None:
    """Answer until a STEP or an EVALUATE arrives. Raises psutil.NoSuchProcess where the worker ends before."""
    codec: Codec[TO_SERVER] = Codec(TO_SERVER)
    poller = Poller([socket])
    while time.monotonic() < deadline:
        while (received := socket.receive()) is not None:
            peer, frames = received
            if isinstance(codec.decode(frames)[0], Step | Evaluate):
                return
            for reply in server.handle(frames)[1]:
                socket.send(peer, reply)
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            raise psutil.NoSuchProcess(pid)
        poller.wait(0.2)
    raise MeasurementFailed(f"the worker sent no decision within {LONGEST_SEC:.0f} s")
