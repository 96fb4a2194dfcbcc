"""The figures found on a GPU as text, and the promises. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from benchmarks.harness.promises import Promise
from benchmarks.serving.stand import Found

P50_US = 300.0
ACTIONS_PER_SEC = 500_000.0


@dataclass
class Way:
    """One precision, with graphs or without.

    alone: microseconds of a batch, one figure a repeat, by rows. served: one window a repeat, by (clients, envs of
    each). runner: how the server said that its batches ran.
    """

    precision: str
    graphs: bool
    alone: dict[int, list[float]] = field(default_factory=dict)
    served: dict[tuple[int, int], list[Found]] = field(default_factory=dict)
    runner: str = ""

    def __str__(self) -> str:
        return f"{self.precision} {'with' if self.graphs else 'without'} graphs"

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        served = {f"{clients} x {envs}": [asdict(f) for f in found] for (clients, envs), found in self.served.items()}
        return {**asdict(self), "served": served}


def lines(ways: Sequence[Way], few: int, many: int) -> list[Promise]:
    """The promises: latency at `few` envs over the best split among clients, throughput at `many`, with graphs."""
    result = []
    for way in ways:
        if not way.graphs:
            continue
        p50, clients, envs = min((_middle(found, "p50_us"), *cell) for cell, found in _cells(way, few).items())
        result.append(Promise(f"{way}, {clients} x {envs} envs: round trip p50, us", p50, P50_US, at_least=False))
        served = max(_middle(found, "actions_per_sec") for found in _cells(way, many).values())
        rows, alone = max(_rates(way.alone).items())
        result.append(
            Promise(
                f"{way}, actions/s: {served:.0f} of {many} envs over clients, {alone:.0f} of {rows} rows alone",
                max(served, alone),
                ACTIONS_PER_SEC,
            )
        )
    return result


def text(ways: Sequence[Way]) -> str:
    """Tables of medians and spreads: the engine alone by rows of a batch, then what clients saw."""
    out = ["the engine alone, staged inputs to answers on the host: us a batch (least to most), actions/s"]
    for rows in sorted({rows for way in ways for rows in way.alone}):
        out.append(f"{rows:5d} rows")
        for way in (way for way in ways if rows in way.alone):
            us = way.alone[rows]
            out.append(
                f"    {way!s:24s} {median(us):9.1f} ({min(us):.1f} to {max(us):.1f}) {rows / median(us) * 1e6:12.0f}"
            )
    out.append(
        "\nover local clients: actions/s (least to most), p50 us, p99 us, rows a batch, server's processor us/action"
    )
    for way in ways:
        out.append(f"{way} (the server: {way.runner})")
        for (clients, envs), found in way.served.items():
            rates = [f.actions_per_sec for f in found]
            out.append(
                f"    {clients:2d} x {envs:4d} {median(rates):10.0f} ({min(rates):.0f} to {max(rates):.0f}) "
                + " ".join(f"{_middle(found, name):9.1f}" for name in ("p50_us", "p99_us", "mean_batch", "cpu_us"))
            )
            out.append(f"         us/action by stage: {_stages(found)}")
    return "\n".join(out) + "\n"


def _cells(way: Way, envs: int) -> dict[tuple[int, int], list[Found]]:
    return {cell: found for cell, found in way.served.items() if cell[0] * cell[1] == envs}


def _rates(alone: Mapping[int, Sequence[float]]) -> dict[int, float]:
    """Actions a second by rows of a batch."""
    return {rows: rows / median(us) * 1e6 for rows, us in alone.items()}


def _middle(found: Sequence[Found], name: str) -> float:
    return float(median(getattr(f, name) for f in found))


def _stages(found: Sequence[Found]) -> dict[str, float]:
    return {name: median(f.stage_us[name] for f in found) for name in found[0].stage_us}
