"""The promises against other systems, judged by what was found. Pure.

Every ratio is of two figures of the same repeat; the verdict is by their median. `by_cpu` is the same ratio of the
servers' processor time an action, which other processes on the machine distort less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.harness.promises import Promise
from simul.inference_server.loadtest.results import ahead_from

PEERS = ("mosec", "torchrl")
PROMISED = {"float32": 1.45, "bfloat16": 1.9}
TOLERANCE = {"float32": 1e-3, "bfloat16": 2e-2}  # relative, of the sums in `Window.checked`


@dataclass(frozen=True)
class Window:
    """What one window found.

    cpu_us: processor time an action, of the server (local: of the clients). checked: see `closed_loop.measure`, one sum
    a client, those that got so far.
    """

    actions_per_sec: float
    cpu_us: float
    p50_us: float
    p99_us: float
    mean_batch: float
    checked: tuple[float, ...] = ()


@dataclass(frozen=True)
class Repeat:
    """One round.

    windows: at the envs per client of the comparison, by system. ours, local: by envs per client.
    forward: (by the clock, processor time) microseconds an action of the bare forward, by batch.
    """

    windows: Mapping[str, Window]
    ours: Mapping[int, Window]
    local: Mapping[int, Window]
    forward: Mapping[int, tuple[float, float]]


def other_policies(precision: str, windows: Mapping[str, Window]) -> list[str]:
    """Names of systems that serve another policy than the local clients run, or lose its state."""
    right = median(windows["local"].checked or (0.0,))
    return [
        name
        for name, window in windows.items()
        if right and any(abs(found / right - 1) > TOLERANCE[precision] for found in window.checked)
    ]


def against_peers(precision: str, repeats: Sequence[Repeat]) -> list[Promise]:
    """The only promise: this server against the better peer of each repeat."""
    rates, costs = [], []
    for repeat in repeats:
        own, peers = repeat.windows["simul"], [repeat.windows[name] for name in PEERS]
        rates.append(own.actions_per_sec / max(peer.actions_per_sec for peer in peers))
        costs.append(min(peer.cpu_us for peer in peers) / own.cpu_us)
    name = f"{precision}: simul / the better of mosec and TorchRL"
    return [Promise(name, median(rates), PROMISED[precision], by_cpu=median(costs))]


def ratios(repeats: Sequence[Repeat], other: str) -> tuple[float, float, float]:
    """simul / `other`: (median, least, most)."""
    found = [r.windows["simul"].actions_per_sec / r.windows[other].actions_per_sec for r in repeats]
    return median(found), min(found), max(found)


def against_local(repeats: Sequence[Repeat]) -> dict[int, float]:
    """Ours / local inference, median by envs per client."""
    sizes = repeats[0].ours.keys() & repeats[0].local.keys()
    return {
        envs: median(r.ours[envs].actions_per_sec / r.local[envs].actions_per_sec for r in repeats)
        for envs in sorted(sizes)
    }


def crossover(precision: str, found: Mapping[int, float]) -> str:
    """A sentence: from how many envs per client on the server is faster than local inference."""
    first = ahead_from(found, dict.fromkeys(found, 1.0))
    if first is not None:
        return (
            f"{precision}: the server gives more actions a second than local inference from {first} envs a client on."
        )
    ahead = [str(envs) for envs, ratio in found.items() if ratio > 1]
    if ahead:
        return (
            f"{precision}: the server is ahead of local inference at {', '.join(ahead)} envs a client, "
            f"and behind at {max(found)}."
        )
    return f"{precision}: local inference gives more actions a second at every number of envs measured."
