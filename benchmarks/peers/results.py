"""The comparison's figures as text, and the promises against other systems. Pure.

Every ratio is of two figures of the same repeat; the verdict is by their median. `by_cpu` is the same ratio of the
servers' processor time an action, which other processes on the machine distort less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.harness.promises import Promise
from benchmarks.peers.systems import CLIENTS, ENVS, Tuned, Window, describe
from simul.launch.loadtest.results import ahead_from

HEAD = ("actions/s", "cpu us/act", "p50 us", "p99 us", "rows/batch", "of fwd 128", "simul /", "(least", "most)")
PEERS = ("mosec", "torchrl")
PROMISED = {"float32": 1.45, "bfloat16": 1.9}
TOLERANCE = {"float32": 1e-3, "bfloat16": 2e-2}  # relative, of the sums in `Window.checked`


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


def text(precision: str, repeats: Sequence[Repeat], lines: Sequence[Promise], tuned: Mapping[str, Tuned]) -> str:
    """One precision: settings, medians, local inference, verdicts."""
    out = ["", f"{precision}: {CLIENTS} clients x {ENVS} envs; the server on one core, the clients on the other"]
    for name, result in tuned.items():
        out.append(f"  {name}: {describe(result.best)}; actions/s of each that was tried:")
        out += [f"    {rate:10,.0f}  {setting}" for setting, rate in result.tried.items()]
    out += _table(repeats)
    out += _forward(repeats)
    out += _local(precision, repeats)
    return "\n".join([*out, *map(str, lines), ""])


def _table(repeats: Sequence[Repeat]) -> list[str]:
    out = ["  ".join([" " * 10, *(f"{title:>10s}" for title in HEAD)])]
    full = CLIENTS * ENVS
    for name in repeats[0].windows:
        windows = [repeat.windows[name] for repeat in repeats]
        cells = [
            median(getattr(window, field) for window in windows)
            for field in ("actions_per_sec", "cpu_us", "p50_us", "p99_us", "mean_batch")
        ]
        share = median(r.windows[name].actions_per_sec * r.forward[full][0] * 1e-6 for r in repeats)
        row = [*(f"{cell:10,.1f}" for cell in cells), *(f"{cell:10.2f}" for cell in (share, *ratios(repeats, name)))]
        out.append("  ".join([f"{name:10s}", *row]))
    out.append("local: on both cores, at its own envs' batch; what of fwd 128 is above 1 comes from the second core.")
    return out


def _forward(repeats: Sequence[Repeat]) -> list[str]:
    batches = sorted(set.intersection(*(set(repeat.forward) for repeat in repeats)))
    each = [f"{batch}: {median(repeat.forward[batch][0] for repeat in repeats):.2f}" for batch in batches]
    return [f"the bare forward, us an action at a batch of {', '.join(each)}"]


def _local(precision: str, repeats: Sequence[Repeat]) -> list[str]:
    found = against_local(repeats)
    out = [f"{precision}: {CLIENTS} clients, actions/s by envs per client: simul, local inference, simul / local"]
    for envs, ratio in found.items():
        ours, own = (median(r[envs].actions_per_sec for r in rows) for rows in _sides(repeats))
        out.append(f"  {envs:5d}  {ours:10,.0f}  {own:10,.0f}  {ratio:6.2f}")
    return [*out, crossover(precision, found)]


def _sides(repeats: Sequence[Repeat]) -> tuple[list[Any], list[Any]]:
    return [r.ours for r in repeats], [r.local for r in repeats]
