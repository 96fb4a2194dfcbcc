"""Service times: fitted to what was measured, kept as JSON. Pure.

A window of closed-loop clients tells how much processor time each thread took for how many messages, rows and batches.
The times of one route are the non-negative linear model of these counts with the least relative error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray


class Window(msgspec.Struct, frozen=True):
    """One window of one server and its closed-loop clients; a message holds `rows` rows. Processor times in us.

    Attributes:
        seconds: between the two reports of the server that the counts are taken from.
        loop_us, io_us, proxy_us: of the server's main thread, of libzmq's thread, of the proxy's process.
        forward_us: of loop_us, by the share of the forward in the loop's time without waiting.
        client_us, client_io_us: of the clients' main threads and of their libzmq threads, in `client_seconds`.
        p50_us: median of the round trips, the worst client's.
    """

    route: str
    clients: int
    rows: int
    recorded: bool
    seconds: float
    messages: int
    decisions: int
    batches: int
    loop_us: float
    io_us: float
    proxy_us: float
    forward_us: float
    client_seconds: float
    client_messages: int
    client_decisions: int
    client_us: float
    client_io_us: float
    p50_us: float

    @property
    def actions_per_sec(self) -> float:
        return self.client_decisions / self.client_seconds


class HeldOut(msgspec.Struct, frozen=True):
    """A cell that no service time is fitted to: `clients` closed-loop clients at each of `servers` at once.

    Medians of its windows. `actions_per_sec`: of all servers together. `p50_us`: the slowest client's.
    """

    route: str
    servers: int
    clients: int
    rows: int
    actions_per_sec: float
    mean_batch: float
    p50_us: float


class ServiceTimes(msgspec.Struct, frozen=True):
    """Microseconds of processor time on one route.

    Attributes:
        loop_message, loop_batch, loop_row: of the server's loop without the forward.
        record_us, record_io_us: what recording adds to a row, in the loop and in libzmq's thread.
        wake_us: from the first job of an idle thread to its begin; no processor time.
    """

    loop_message: float
    loop_batch: float
    loop_row: float
    forward_batch: float
    forward_row: float
    io_message: float
    io_row: float
    proxy_message: float
    proxy_row: float
    client_message: float
    client_row: float
    client_io_message: float
    client_io_row: float
    record_us: float = 0.0
    record_io_us: float = 0.0
    wake_us: float = 0.0


class Measured(msgspec.Struct, frozen=True):
    """Everything that step 1 found. It is what the file of service times holds.

    Attributes:
        windows: of each cell that was fitted, the one with the median rate.
        routes: service times by route. error: by route, the greatest relative error of the fit in a window, by thread.
        ping_us: processor time of the server for one PING, by route and thread.
        training_us: processor time of a decision in `simul up`, by process; empty where it was not measured.
        row_bytes: a row of STEP on the wire. weights_bytes: one version.
        held_out: what the model is compared with.
    """

    conditions: dict[str, Any]
    windows: list[Window]
    routes: dict[str, ServiceTimes]
    error: dict[str, dict[str, float]]
    ping_us: dict[str, dict[str, float]]
    training_us: dict[str, float]
    row_bytes: int
    weights_bytes: int
    held_out: list[HeldOut] = []


def median_window(windows: Sequence[Window]) -> Window:
    """The one with the median rate; of an even number the lower one of the middle."""
    return sorted(windows, key=lambda window: window.actions_per_sec)[(len(windows) - 1) // 2]


def held_out(route: str, rounds: Sequence[Sequence[Window]]) -> HeldOut:
    """The medians of a cell. `rounds`: in each a window of every server."""
    first = rounds[0][0]
    return HeldOut(
        route, len(rounds[0]), first.clients, first.rows,
        actions_per_sec=median(sum(window.actions_per_sec for window in windows) for windows in rounds),
        mean_batch=median(sum(w.decisions for w in ws) / sum(w.batches for w in ws) for ws in rounds),
        p50_us=median(max(window.p50_us for window in windows) for windows in rounds),
    )  # fmt: skip


def fit(windows: Sequence[Window]) -> tuple[ServiceTimes, dict[str, float]]:
    """Service times of one route, and the greatest relative error of each thread. Raises ValueError without windows."""
    plain = [window for window in windows if not window.recorded]
    if not plain:
        raise ValueError("no window without recording: nothing to fit")
    loop, loop_error = _fit(plain, lambda w: w.loop_us - w.forward_us, _messages, _batches, _rows)
    forward, forward_error = _fit(plain, lambda w: w.forward_us, _batches, _rows)
    io, io_error = _fit(plain, lambda w: w.io_us, _messages, _rows)
    proxy, proxy_error = _fit(plain, lambda w: w.proxy_us, _messages, _rows)
    client, client_error = _fit(plain, lambda w: w.client_us, _client_messages, _client_rows)
    client_io, client_io_error = _fit(plain, lambda w: w.client_io_us, _client_messages, _client_rows)
    recorded = [w for w in windows if w.recorded]
    record_loop = [w.loop_us - w.forward_us - loop @ (w.messages, w.batches, w.decisions) for w in recorded]
    record_io = [w.io_us - io @ (w.messages, w.decisions) for w in recorded]
    decisions = sum(w.decisions for w in recorded) or 1
    found = [us for part in (loop, forward, io, proxy, client, client_io) for us in part.tolist()]
    found += [max(0.0, float(sum(record_loop)) / decisions), max(0.0, float(sum(record_io)) / decisions)]
    times = ServiceTimes(**dict(zip(ServiceTimes.__struct_fields__, [*found, 0.0], strict=True)))
    return times, {
        "loop": loop_error, "forward": forward_error, "io": io_error, "proxy": proxy_error, "client": client_error,
        "client_io": client_io_error,
    }  # fmt: skip


Count = Callable[[Window], float]


def _fit(windows: Sequence[Window], cost: Count, *counts: Count) -> tuple[NDArray[np.float64], float]:
    """Cost of one of each of `counts`, and the greatest relative error. A thread without any cost gets zeros."""
    from scipy.optimize import nnls  # only here: a second, also where nothing is fitted

    costs = np.array([cost(window) for window in windows])
    if not costs.any():
        return np.zeros(len(counts)), 0.0
    matrix = np.array([[count(window) for count in counts] for window in windows], float)
    weights = 1.0 / np.maximum(costs, 1e-3 * costs.max())
    found, _ = nnls(matrix * weights[:, None], costs * weights)
    return found, float(np.abs((matrix @ found - costs) * weights).max())


def _messages(window: Window) -> float:
    return window.messages


def _batches(window: Window) -> float:
    return window.batches


def _rows(window: Window) -> float:
    return window.decisions


def _client_messages(window: Window) -> float:
    return window.client_messages


def _client_rows(window: Window) -> float:
    return window.client_decisions
