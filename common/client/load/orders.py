"""Orders to a client process of the load test, and its reports: lines of JSON over stdin and stdout.

`carry_out` is the process's loop. `python -m simul.common.client.load` loads a server; the inference server's load test
has a process that runs the policy itself.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from collections.abc import Callable
from queue import Empty, Queue
from typing import Any, Literal, Protocol

import msgspec
import psutil

from simul.common.client.load.driver import LoadDriver, LoadTarget, PoissonSchedule, SessionRows
from simul.common.client.load.windows import Window, WindowClock
from simul.common.errors import SimulError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir


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


class LoadedPolicy(LoadTarget, Protocol):
    """What a client process loads: a server, or a policy in the process itself."""

    def forward_per_sec(self, batch: int, seconds: float) -> float:
        """Rows a second of the network alone at `batch`; only of a policy in this process."""

    def close(self) -> None:
        """Release what it holds."""


def carry_out(set_up: Callable[[SetUp, GameSpec], Callable[[], LoadedPolicy]]) -> int:
    """Carry out orders until stdin is closed. Exit code 1 after reporting a failure.

    `set_up` is called once, and what it returns for each cell.
    """
    orders = OrderReader()
    try:
        setup = orders.wait()
        if isinstance(setup, SetUp):
            _serve(setup, orders, set_up)
    except SimulError as error:
        send_report(Failed(str(error)))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _serve(setup: SetUp, orders: OrderReader, set_up: Callable[[SetUp, GameSpec], Callable[[], LoadedPolicy]]) -> None:
    if setup.cores:
        with contextlib.suppress(AttributeError, OSError):  # not every system supports it
            psutil.Process().cpu_affinity(list(setup.cores))
    spec = RunDir(setup.run_dir).read_spec()
    open_policy = set_up(setup, spec)
    gc.freeze()
    send_report(Done())
    while (order := orders.wait()) is not None:
        if isinstance(order, Prepare):
            policy = open_policy()
            seats = SessionRows(spec, order.envs, order.seed + setup.index)
            send_report(Done())
            go = orders.wait()
            if isinstance(go, Go):
                _run(policy, seats, order, go, setup.index, orders)
            policy.close()
            send_report(Done())
        elif isinstance(order, Forward):
            send_report(Forwarded(open_policy().forward_per_sec(order.batch, order.seconds)))


def _run(policy: LoadTarget, seats: SessionRows, cell: Prepare, go: Go, index: int, orders: OrderReader) -> None:
    def tick(window: Window) -> bool:
        send_report(window)
        return orders.arrived()

    driver = LoadDriver(policy, seats, WindowClock(go.start, go.warm_up_sec, go.window_sec))
    if cell.mode == "closed":
        driver.closed_loop(cell.envs, tick)
    else:
        schedule = PoissonSchedule(cell.rate_per_sec, go.start, cell.seed + index)
        driver.open_loop(cell.envs, schedule, tick)
