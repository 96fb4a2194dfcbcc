"""One client process, `python -m simul.inference_server.loadtest.client`, and the messages to and from it.

Orders and reports are lines of JSON over stdin and stdout. Only the local baseline imports torch.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Literal, Protocol

import msgspec
import psutil

from simul.common.client.columns import ColumnClient
from simul.common.errors import SimulError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.transport import client_keys
from simul.inference_server.loadtest.driver import LoadDriver, PoissonSchedule, Policy, SessionRows
from simul.inference_server.loadtest.windows import Window, WindowClock


class Order(msgspec.Struct, frozen=True, tag=True):
    """Base of the orders to a client process. It ends when its stdin is closed."""


class SetUp(Order, frozen=True):
    """The first order: the policy to load. `spec.json` and `config.yaml` lie in `run_dir`.

    Attributes:
        endpoint: of the server; empty: run the policy with the weights in `checkpoint`, here.
        cores: processor cores to stay on; empty: all.
        connect_sec: with an endpoint, how long to wait for WELCOME.
        keys: with an endpoint, folder of the client's CURVE keys; empty: none.
    """

    index: int
    run_dir: str
    endpoint: str = ""
    checkpoint: str = ""
    cores: tuple[int, ...] = ()
    connect_sec: float = 0.0
    keys: str = ""


class Prepare(Order, frozen=True):
    """Connect and draw the traffic of a cell. `rate_per_sec` is this client's share (open loop)."""

    mode: Literal["closed", "open"]
    envs: int
    seed: int
    rate_per_sec: float = 0.0


class Go(Order, frozen=True):
    """Run the prepared cell from `start` (time.perf_counter(), which all processes share) until `Stop`."""

    start: float
    warm_up_sec: float
    window_sec: float


class Stop(Order, frozen=True):
    """End the cell."""


class Forward(Order, frozen=True):
    """Time the bare forward of `batch` rows for `seconds`."""

    batch: int
    seconds: float


class Done(msgspec.Struct, frozen=True, tag="done"):
    """An order is carried out."""


class Forwarded(msgspec.Struct, frozen=True, tag="forwarded"):
    """Answer to `Forward`."""

    actions_per_sec: float


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The client process cannot continue, and why."""

    sentence: str


Report = Done | Window | Forwarded | Failed
_order_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(SetUp | Prepare | Go | Stop | Forward)
_report_decoder: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)


def read_report(line: bytes) -> Report:
    """A line of a client process's stdout."""
    return _report_decoder.decode(line)


class OrderReader:
    """Reads orders from stdin in a thread, so that a running load can check for one without waiting."""

    def __init__(self) -> None:
        self._orders: Queue[Order | None] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def wait(self) -> Order | None:
        """The next order; None when stdin is closed."""
        return self._orders.get()

    def arrived(self) -> bool:
        """True when an order or the end of stdin waits. All but `Stop` stay for `wait`."""
        try:
            order = self._orders.get_nowait()
        except Empty:
            return False
        if not isinstance(order, Stop):
            self._orders.put(order)
        return True

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            self._orders.put(_order_decoder.decode(line))
        self._orders.put(None)


def send_report(report: Report) -> None:
    """Write a report to stdout."""
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


class InProcessPolicy(Policy, Protocol):
    """`local.LocalPolicy`; only a process that runs the policy imports that module, which brings torch."""

    def forward_per_sec(self, batch: int, seconds: float) -> float:
        """Rows a second of the network alone at `batch`."""

    def close(self) -> None:
        """Release what it holds."""


class ServedPolicy(ColumnClient):
    """A column client that waits on its socket."""

    def wait(self, timeout_sec: float) -> None:
        """Wait for a message, at most `timeout_sec`; 0: only yield the core to other processes."""
        if timeout_sec > 0:
            self.poller.wait(timeout_sec)
        elif hasattr(os, "sched_yield"):  # among others to the thread that reads the socket
            os.sched_yield()


def main() -> int:
    """Carry out orders until stdin is closed. Exit code 1 after reporting a failure."""
    orders = OrderReader()
    try:
        setup = orders.wait()
        if isinstance(setup, SetUp):
            _serve(setup, orders)
    except SimulError as error:
        send_report(Failed(str(error)))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _serve(setup: SetUp, orders: OrderReader) -> None:
    if setup.cores:
        with contextlib.suppress(AttributeError, OSError):  # not every system supports it
            psutil.Process().cpu_affinity(list(setup.cores))
    spec = RunDir(setup.run_dir).read_spec()
    local = None if setup.endpoint else _local(setup, spec)
    keys = client_keys(Path(setup.keys)) if setup.keys else None
    gc.freeze()
    send_report(Done())
    while (order := orders.wait()) is not None:
        if isinstance(order, Prepare):
            policy = local or ServedPolicy(setup.endpoint, name=f"loadtest-{setup.index}", spec=spec, keys=keys)
            if isinstance(policy, ServedPolicy):
                policy.connect(setup.connect_sec)
            seats = SessionRows(spec, order.envs, order.seed + setup.index)
            send_report(Done())
            go = orders.wait()
            if isinstance(go, Go):
                _run(policy, seats, order, go, setup.index, orders)
            policy.close()
            send_report(Done())
        elif isinstance(order, Forward) and local is not None:
            send_report(Forwarded(local.forward_per_sec(order.batch, order.seconds)))


def _local(setup: SetUp, spec: GameSpec) -> InProcessPolicy:
    from simul.inference_server.loadtest.local import LocalPolicy

    config, trust = RunDir(setup.run_dir).read_trusted_config()
    return LocalPolicy(config, spec, Path(setup.checkpoint), trust)


def _run(policy: Policy, seats: SessionRows, cell: Prepare, go: Go, index: int, orders: OrderReader) -> None:
    def tick(window: Window) -> bool:
        send_report(window)
        return orders.arrived()

    driver = LoadDriver(policy, seats, WindowClock(go.start, go.warm_up_sec, go.window_sec))
    if cell.mode == "closed":
        driver.closed_loop(cell.envs, tick)
    else:
        schedule = PoissonSchedule(cell.rate_per_sec, go.start, cell.seed + index)
        driver.open_loop(cell.envs, schedule, tick)


if __name__ == "__main__":
    sys.exit(main())
