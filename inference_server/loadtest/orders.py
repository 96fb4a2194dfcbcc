"""What the load test and its client processes say to each other: one line of JSON each, over stdin and stdout."""

from __future__ import annotations

import sys
import threading
from queue import Empty, Queue
from typing import Any, Literal

import msgspec

from simul.inference_server.loadtest.windows import Window


class Order(msgspec.Struct, frozen=True, tag=True):
    """Base of what a client process is told. A closed stdin means: leave."""


class SetUp(Order, frozen=True):
    """First of all: what to load. `spec.json` and `config.yaml` lie in `run_dir`.

    Attributes:
        endpoint: of the server; empty: run the policy with the weights in `checkpoint`, here.
        cores: processor cores to stay on; empty: all.
        connect_sec: with an endpoint, how long the server may take to say WELCOME.
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
    """A client process has carried out an order."""


class Forwarded(msgspec.Struct, frozen=True, tag="forwarded"):
    """Answer to `Forward`."""

    actions_per_sec: float


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The client process cannot go on, and why."""

    sentence: str


Report = Done | Window | Forwarded | Failed
_orders: msgspec.json.Decoder[Any] = msgspec.json.Decoder(SetUp | Prepare | Go | Stop | Forward)
_reports: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)


def read_report(line: bytes) -> Report:
    """A line of a client process's stdout."""
    return _reports.decode(line)


class Inbox:
    """Orders as they come on stdin, read in a thread so that a running load can look without waiting."""

    def __init__(self) -> None:
        self._orders: Queue[Order | None] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def wait(self) -> Order | None:
        """The next order; None when stdin is closed."""
        return self._orders.get()

    def arrived(self) -> bool:
        """True when an order, or the end of stdin, waits. An end stays to be seen by `wait`."""
        try:
            order = self._orders.get_nowait()
        except Empty:
            return False
        if not isinstance(order, Stop):
            self._orders.put(order)
        return True

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            self._orders.put(_orders.decode(line))
        self._orders.put(None)


def say(report: Report) -> None:
    """Write a line to stdout."""
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()
