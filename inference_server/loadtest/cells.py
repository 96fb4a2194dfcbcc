"""What `loadtest.json` holds."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Mode = Literal["closed", "open", "local"]


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One setting, measured. None: not known (a server that was not started here), or it does not apply.

    Attributes:
        mode: closed loop, open loop, or `local`: clients that run the policy themselves, closed loop.
        envs_per_client: sessions of each client process.
        precision: what the server computes in (`auto` is resolved); None where a running server was loaded.
        offered_per_sec: open loop: rows due a second.
        actions_per_sec, latency_us, send_lag_us, samples, windows, stable, errors, client_busy: see
            `simul.inference_server.loadtest.windows.Figures`.
        mean_batch, batch_histogram: rows a forward; forwards by rows, rounded up to a power of two. Where a running
            server was loaded, those of all its clients, the histogram not known.
        full_batch: closed loop: rows of the largest forward there could be, all envs in flight or `server.max_batch`.
        forward_actions_per_sec: of the bare forward at `mean_batch`, same precision and core, nothing else running.
        full_forward_actions_per_sec: the same at `full_batch`.
        lost_to_small_batches: 0 to 1, of the latter: what the bare forward lost because batches were not full.
        stages_us: where the server's time went, microseconds an action.
    """

    mode: Mode
    clients: int
    envs_per_client: int
    precision: str | None
    offered_per_sec: float | None = None
    actions_per_sec: float
    latency_us: dict[str, float]
    send_lag_us: dict[str, float]
    samples: int
    windows: int
    stable: bool
    mean_batch: float | None = None
    batch_histogram: dict[str, int] | None = None
    full_batch: int | None = None
    forward_actions_per_sec: float | None = None
    full_forward_actions_per_sec: float | None = None
    lost_to_small_batches: float | None = None
    stages_us: dict[str, float] | None = None
    errors: dict[str, int]
    client_busy: float

    def keeps(self, p99_ms: float) -> bool:
        """Open loop: the offered rate was served, without an error, with 99 of 100 rows within `p99_ms`."""
        served = self.actions_per_sec >= 0.95 * (self.offered_per_sec or 0.0)
        return served and not self.errors and self.latency_us.get("p99", float("inf")) <= 1000 * p99_ms


class MaxRate(msgspec.Struct, frozen=True):
    """Outcome of --find-max-rate. `actions_per_sec` None: not even the lowest rate kept the promise."""

    p99_ms: float
    precision: str | None
    actions_per_sec: float | None
    trials: int


class Result(msgspec.Struct, frozen=True):
    """All of one load test."""

    conditions: dict[str, Any]
    cells: list[Cell]
    max_rates: list[MaxRate]
    recommendation: list[str]
