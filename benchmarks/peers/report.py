"""The comparison's figures as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.harness.promises import Promise
from benchmarks.peers.promises import Repeat, against_local, crossover, ratios
from benchmarks.peers.systems import CLIENTS, ENVS, Tuned, describe

HEAD = ("actions/s", "cpu us/act", "p50 us", "p99 us", "rows/batch", "of fwd 128", "simul /", "(least", "most)")


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
