"""The content of `loadtest.json`, and the advice that follows from it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
        actions_per_sec, latency_us, send_lag_us, samples, windows, stable, errors, client_busy, spread: see
            `simul.common.client.load.windows.LoadFigures`.
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
    spread: dict[str, tuple[float, float]] = {}

    def keeps_p99(self, p99_ms: float) -> bool:
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


ENOUGH = 0.90  # of the maximum: beyond this more envs cost latency and add little throughput
LATE_US = 1000.0
DISTURBED = 0.1


def recommendation(cells: Sequence[Cell], max_rates: Sequence[MaxRate], others_busy: float = 0.0) -> list[str]:
    """Sentences: the best setting, the local baseline, the largest rate, and reasons to doubt the figures.

    `others_busy`: share of the processor that other processes took while it was measured.
    """
    sentences = []
    for precision in _in_order(cell.precision for cell in cells):
        own = [cell for cell in cells if cell.precision == precision]
        closed = [cell for cell in own if cell.mode == "closed" and cell.latency_us and not cell.errors]
        if closed:
            sentences.append(_setting(closed, precision))
        local = [cell for cell in own if cell.mode == "local" and cell.latency_us]
        if closed and local:
            sentences.append(_against_local(closed, local))
    sentences += [_max_rate(found) for found in max_rates]
    if others_busy > DISTURBED:
        sentences.append(
            f"Other processes took {others_busy:.0%} of the processor: the figures are worse than they could be."
        )
    return sentences + _doubts(cells)


def best_setting(cells: Sequence[Cell]) -> Cell:
    """The fewest sessions that reach 90% of the most actions a second; of equals the one with the lowest p99."""
    most = max(cell.actions_per_sec for cell in cells)
    enough = [cell for cell in cells if cell.actions_per_sec >= ENOUGH * most]
    return min(enough, key=lambda cell: (cell.clients * cell.envs_per_client, cell.latency_us["p99"]))


def crossover(closed: Sequence[Cell], local: Sequence[Cell], clients: int) -> int | None:
    """The fewest envs per client from which on the server is faster than `clients` with a local policy."""
    own = {cell.envs_per_client: cell.actions_per_sec for cell in local if cell.clients == clients}
    served = {cell.envs_per_client: cell.actions_per_sec for cell in closed if cell.clients == clients}
    return ahead_from(served, own)


def ahead_from(one: Mapping[int, float], other: Mapping[int, float]) -> int | None:
    """The least key from which on `one` is larger than `other` at every key that both have; None without such a key."""
    from_here = None
    for key in sorted(one.keys() & other.keys(), reverse=True):
        if one[key] <= other[key]:
            break
        from_here = key
    return from_here


def _setting(closed: Sequence[Cell], precision: str | None) -> str:
    best = best_setting(closed)
    most = max(cell.actions_per_sec for cell in closed)
    words = (
        f"{_count(best.clients, 'client')} with {_count(best.envs_per_client, 'env')} "
        f"{'reaches' if best.clients == 1 else 'each reach'} {best.actions_per_sec / most:.0%} of the maximum "
        f"({best.actions_per_sec:,.0f} of {most:,.0f} actions/s) at p99 {best.latency_us['p99'] / 1000:.1f} ms"
    )
    if best.forward_actions_per_sec:
        words += f"; that is {best.actions_per_sec / best.forward_actions_per_sec:.0%} of the bare forward"
    if best.lost_to_small_batches:
        words += (
            f"; batches of {best.mean_batch:.0f} rows, where {best.full_batch} could be in one, cost "
            f"{best.lost_to_small_batches:.0%} of the forward"
        )
    return f"{words}{f' ({precision})' if precision else ''}."


def _against_local(closed: Sequence[Cell], local: Sequence[Cell]) -> str:
    clients = max(cell.clients for cell in local)
    from_here = crossover(closed, local, clients)
    who = f"{_count(clients, 'client')} that {'runs' if clients == 1 else 'run'} the policy on all cores"
    precision = f" ({closed[0].precision})" if closed[0].precision else ""
    if from_here is None:
        return f"Against {who}: at the most envs measured, deciding locally gives more actions a second{precision}."
    return f"Against {who}: the server gives more actions a second from {from_here} envs per client on{precision}."


def _max_rate(found: MaxRate) -> str:
    precision = f" ({found.precision})" if found.precision else ""
    if found.actions_per_sec is None:
        return f"No rate keeps p99 within {found.p99_ms:g} ms{precision}."
    rate = f"{found.actions_per_sec:,.0f} actions/s"
    return f"Up to {rate}, arriving at random, keep p99 within {found.p99_ms:g} ms{precision}."


def _doubts(cells: Sequence[Cell]) -> list[str]:
    doubts = []
    unstable = sum(not cell.stable for cell in cells)
    if unstable:
        doubts.append(f"{unstable} of {len(cells)} cells did not become stable (marked ~): measure longer, or alone.")
    late = [cell for cell in cells if cell.send_lag_us.get("p99", 0.0) > LATE_US]
    if late:
        rate = min(cell.offered_per_sec or 0.0 for cell in late)
        doubts.append(
            f"From {rate:,.0f} actions/s offered on, rows waited in the client (p99 above 1 ms) for a free session "
            "or for the processor; that wait is counted."
        )
    refused: Counter[str] = Counter()
    for cell in cells:
        refused.update(cell.errors)
    if refused:
        codes = ", ".join(f"{code} {rows:,}" for code, rows in refused.items())
        doubts.append(f"Rows were refused, and settings with refused rows are not recommended: {codes}.")
    return doubts


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _in_order(names: Iterable[str | None]) -> list[str | None]:
    return list(dict.fromkeys(names))
