"""Measures one cell at a time: starts its clients, takes windows until they are stable, adds the server's figures."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from simul.common.client.load.orders import Forward, Forwarded, Go, Prepare, Stop
from simul.common.client.load.windows import (
    LoadFigures,
    Window,
    complete_windows,
    figures,
    is_stable,
)
from simul.common.errors import InferenceError
from simul.launch.loadtest.client_pool import ClientPool
from simul.launch.loadtest.results import Cell, Mode
from simul.launch.loadtest.servers import MeasuredServer, histogram_between, mean_batch_between, stages_between

REPORT_WAIT_SEC = 0.05
LATE_SEC = 15.0
FORWARD_SEC = 0.3

Span = tuple[float, float]  # of time.perf_counter()
Tick = Callable[[str], None]  # gets a cell's figures so far, for display


@dataclass(frozen=True)
class _ServerFigures:
    """The server's figures of one cell; see `Cell`."""

    mean_batch: float | None = None
    histogram: dict[str, int] | None = None
    stages_us: dict[str, float] | None = None


class CellRunner:
    """Measures cells against one server (None: the clients run the policy), with one pool.

    Forwards are timed by `timer`, one process; None: not at all. `max_batch` is the server's; None: not known.
    """

    def __init__(
        self, pool: ClientPool, server: MeasuredServer | None, timer: ClientPool | None, *, max_batch: int | None,
        precision: str | None, warm_up_sec: float, window_sec: float, max_windows: int, seed: int,
    ) -> None:  # fmt: skip
        self._pool = pool
        self._server = server
        self._timer = timer
        self._max_batch = max_batch
        self._precision = precision
        self._warm_up_sec = warm_up_sec
        self._window_sec = window_sec
        self._max_windows = max_windows
        self._seed = seed
        self._forwards: dict[int, float] = {}

    def closed(self, clients: int, envs: int, tick: Tick, mode: Mode = "closed") -> Cell:
        """`clients` processes with `envs` sessions each, closed loop. Raises InferenceError, RoleDied."""
        found, span = self._run(clients, Prepare("closed", envs, self._seed), tick)
        return self._cell(mode, clients, envs, found, span)

    def open(self, clients: int, envs: int, rate_per_sec: float, tick: Tick) -> Cell:
        """Poisson arrivals at `rate_per_sec` over all clients. Raises InferenceError, RoleDied."""
        order = Prepare("open", envs, self._seed, rate_per_sec / clients)
        found, span = self._run(clients, order, tick)
        return self._cell("open", clients, envs, found, span, offered_per_sec=round(rate_per_sec, 1))

    def _run(self, clients: int, prepare: Prepare, tick: Tick) -> tuple[LoadFigures, Span]:
        """Figures of a cell, and when its windows began and ended."""
        self._pool.send_order(prepare, clients)
        self._pool.gather(clients)
        start = time.perf_counter()
        self._pool.send_order(Go(start, self._warm_up_sec, self._window_sec), clients)
        by_client: list[list[Window]] = [[] for _ in range(clients)]
        windows: list[list[Window]] = []
        while not is_stable(windows) and len(windows) < self._max_windows:
            self._listen(by_client)
            done = complete_windows(by_client)
            if len(done) > len(windows):
                tick(_in_words(figures(done)))
            windows = done
            expected = start + self._warm_up_sec + (len(windows) + 1) * self._window_sec
            if time.perf_counter() > expected + LATE_SEC:
                raise InferenceError("ERR_TIMEOUT", f"no figures from the clients for {LATE_SEC:.0f} s")
        self._pool.send_order(Stop(), clients)
        self._pool.gather(clients)
        begin = start + self._warm_up_sec
        return figures(windows), (begin, begin + len(windows) * self._window_sec)

    def _listen(self, by_client: list[list[Window]]) -> None:
        received = self._pool.receive_report(REPORT_WAIT_SEC)
        if received is not None and isinstance(received[1], Window):
            by_client[received[0]].append(received[1])
        if self._server is not None:
            self._server.update_reports()

    def _cell(
        self, mode: Mode, clients: int, envs: int, found: LoadFigures, span: Span, offered_per_sec: float | None = None
    ) -> Cell:
        seen = _ServerFigures(float(envs)) if mode == "local" else self._seen_by_server(span)
        full = min(clients * envs, self._max_batch) if mode == "closed" and self._max_batch else None
        forward, full_forward = self._forward(seen.mean_batch), self._forward(full)
        return Cell(
            mode=mode, clients=clients, envs_per_client=envs, precision=self._precision,
            offered_per_sec=offered_per_sec, actions_per_sec=found.actions_per_sec, latency_us=found.latency_us,
            send_lag_us=found.send_lag_us, samples=found.samples, windows=found.windows, stable=found.stable,
            mean_batch=seen.mean_batch, batch_histogram=seen.histogram, stages_us=seen.stages_us, full_batch=full,
            forward_actions_per_sec=forward, full_forward_actions_per_sec=full_forward,
            lost_to_small_batches=_lost(forward, full_forward), errors=found.errors, client_busy=found.client_busy,
            spread=found.spread,
        )  # fmt: skip

    def _seen_by_server(self, span: Span) -> _ServerFigures:
        """Between the reports inside the measured span; warm-up included where there are too few."""
        if self._server is None:
            return _ServerFigures()
        begin, end = span
        reports = self._server.server_reports
        span_ends = reports.between(begin, end) or reports.between(begin - self._warm_up_sec, end)
        mean_batch = mean_batch_between(*span_ends) if span_ends is not None else None
        if span_ends is None or mean_batch is None:
            return _ServerFigures()
        return _ServerFigures(mean_batch, histogram_between(*span_ends), stages_between(*span_ends))

    def _forward(self, batch: float | None) -> float | None:
        """Actions a second of the bare forward, timed once for each batch size."""
        if batch is None or self._timer is None:
            return None
        size = max(1, round(batch))
        if size not in self._forwards:
            self._timer.send_order(Forward(size, FORWARD_SEC), 1)
            (answer,) = self._timer.gather(1)
            assert isinstance(answer, Forwarded)
            self._forwards[size] = round(answer.actions_per_sec, 1)
        return self._forwards[size]


def _lost(forward: float | None, full_forward: float | None) -> float | None:
    """A forward's time is nearly affine in its rows, so that the mean batch alone tells what all of them cost."""
    if not forward or not full_forward:
        return None
    return round(max(0.0, 1.0 - forward / full_forward), 3)


def _in_words(found: LoadFigures) -> str:
    p99 = found.latency_us.get("p99", 0.0) / 1000
    return f"{found.actions_per_sec:,.0f} actions/s, p99 {p99:.2f} ms"
