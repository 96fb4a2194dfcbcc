"""The promises of serving, judged by what was found. Pure.

Every ratio is of two figures of the same repeat; the verdict is by their median. `by_cpu` is the same ratio of
processor time, which other processes on the machine distort less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from benchmarks.harness.promises import Promise
from benchmarks.serving.stand import Found


@dataclass
class Repeat:
    """One round: windows by name, and the bare forward in microseconds by (batch): (by the clock, processor time)."""

    found: dict[str, Found]
    forward: dict[int, tuple[float, float]]
    around: dict[str, tuple[float, float]]  # the forward at each window's mean batch, microseconds an action


SAME_BATCH = {"float32": 0.85, "bfloat16": 0.65}
AT_128 = {"float32": 0.80, "bfloat16": 0.50}
RECORDING = {"float32": 0.90, "bfloat16": 0.80}


def lines(precision: str, repeats: Sequence[Repeat], sizes: Sequence[int]) -> list[Promise]:
    """Every promise that can be judged by the repeats of one precision."""
    result = [
        _against(repeats, f"{precision}, 4 x 32: served / forward at its own mean batch", SAME_BATCH[precision], None),
        _against(repeats, f"{precision}, 4 x 32: served / forward at batch 128", AT_128[precision], 128),
        _pair(repeats, f"{precision}: recorded / not recorded", "recorded", "plain", RECORDING[precision]),
        _pair(repeats, f"{precision}: five swaps a second / none", "swapped", "plain", 0.95),
        Promise(
            f"{precision}, 2 x 8: rows a batch",
            median(r.found["2x8"].mean_batch for r in repeats), 15.0,
        ),
        Promise(
            f"{precision}, 1 x 1: round trip p50 minus the forward of one row, us",
            median(r.found["1x1"].p50_us - r.forward[1][0] for r in repeats), 150.0, at_least=False,
            by_cpu=median(r.found["1x1"].cpu_us - r.forward[1][1] for r in repeats),
        ),
    ]  # fmt: skip
    stalls = [r.found["swapped"].stall for r in repeats]
    result += [
        Promise(
            f"{precision}: what a swap adds to the longest round trip, us",
            median(stall.beyond_us for stall in stalls if stall), 2000.0, at_least=False,
        )
    ]  # fmt: skip
    result += [
        Promise(
            f"{precision}: cost of an action at {more} envs / at {fewer}",
            median(r.found[f"envs{fewer}"].actions_per_sec / r.found[f"envs{more}"].actions_per_sec for r in repeats),
            1.10, at_least=False,
            by_cpu=median(r.found[f"envs{more}"].cpu_us / r.found[f"envs{fewer}"].cpu_us for r in repeats),
        )
        for fewer, more in pairwise(sizes)
    ]  # fmt: skip
    return result


def _against(repeats: Sequence[Repeat], name: str, promised: float, batch: int | None) -> Promise:
    """Served against the bare forward."""
    walls, cpus = [], []
    for r in repeats:
        found = r.found["plain"]
        wall, cpu = r.around["plain"] if batch is None else (us / batch for us in r.forward[batch])
        walls.append(found.actions_per_sec * wall * 1e-6)
        cpus.append(cpu / found.cpu_us)
    return Promise(name, median(walls), promised, by_cpu=median(cpus))


def _pair(repeats: Sequence[Repeat], name: str, one: str, other: str, promised: float) -> Promise:
    """One window's rate against another's."""
    return Promise(
        name,
        median(r.found[one].actions_per_sec / r.found[other].actions_per_sec for r in repeats),
        promised,
        by_cpu=median(r.found[other].cpu_us / r.found[one].cpu_us for r in repeats),
    )


def stages(repeats: Sequence[Repeat], window: str) -> Mapping[str, float]:
    """Median microseconds an action by stage."""
    names = repeats[0].found[window].stage_us
    return {name: median(r.found[window].stage_us[name] for r in repeats) for name in names}


def asides(repeats: Sequence[Repeat], other: str) -> list[str]:
    """Figures without a promise. `other`: how the second server makes its batches."""

    def ratio(one: str, two: str) -> float:
        return median(r.found[one].actions_per_sec / r.found[two].actions_per_sec for r in repeats)

    def batch(window: str) -> float:
        return median(r.found[window].mean_batch for r in repeats)

    stalls = [r.found["swapped"].stall for r in repeats]
    around, without, p90 = (
        median(getattr(stall, name) for stall in stalls if stall)
        for name in ("around_us", "without_us", "worse_p90_us")
    )
    return [
        f"three past selves beside the learner: {batch('3 past'):.1f} rows a batch instead of {batch('plain'):.1f}, "
        f"{ratio('3 past', 'plain'):.2f} of the rate",
        f"2 x 8: {batch('2x8'):.1f} rows a batch, {batch('2x8 other'):.1f} with {other}; "
        f"{ratio('2x8', '2x8 other'):.2f} of its rate",
        f"swaps: longest round trip around one {around:.0f} us, without {without:.0f}; "
        f"one swap in ten adds more than {p90:.0f}",
    ]
