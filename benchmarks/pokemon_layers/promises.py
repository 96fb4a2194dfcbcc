"""What is promised about speed, and whether one run kept it. Pure.

Ratios are to the stock simulator: the accelerated one is ours, and a faster one must not make the rest look worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.pokemon_layers.samples import Sample

LEAST_LEARNED_SHARE = 0.95
LEAST_PARAMETERS = 1_000_000
# of all of `make up`: which layer it is, the other layer, the least ratio, and what the line is called
RATIOS = (
    ("learning", "simulator", 0.30, "make up / simulator alone, stock"),
    ("learning", "poke_env", 2.0, "make up / poke-env over a local server"),
)


@dataclass(frozen=True)
class Verdict:
    """One promise: what it is called, what was found, what was promised.

    `by_cost`: the same ratio of the microseconds of one core, which a crowded machine distorts less.
    """

    name: str
    value: float
    least: float
    by_cost: float | None = None

    @property
    def kept(self) -> bool:
        return self.value >= self.least

    def __str__(self) -> str:
        value, least = (f"{n:,.0f}" if self.least >= 1000 else f"{n:.2f}" for n in (self.value, self.least))
        by_cost = f"; by processor time {self.by_cost:.2f}" if self.by_cost is not None else ""
        return f"{'PASS' if self.kept else 'FAIL'}  {self.name}: {value} (promised: at least {least}{by_cost})"


def verdicts(samples: Mapping[str, Sequence[Sample]]) -> list[Verdict]:
    """Every promise that can be judged by the layers that were measured."""
    learning = samples.get("learning")
    if not learning:
        return []
    found = [
        Verdict(name, paired_ratio(samples[ours], samples[theirs]), least, cost_ratio(samples[ours], samples[theirs]))
        for ours, theirs, least, name in RATIOS
        if samples.get(ours) and samples.get(theirs)
    ]
    for key, least, name in (
        ("learned_share", LEAST_LEARNED_SHARE, "share of the decisions learned from"),
        ("parameters", LEAST_PARAMETERS, "parameters of the network"),
    ):
        values = [float(sample.notes[key]) for sample in learning if sample.notes.get(key) is not None]
        found.append(Verdict(name, median(values) if values else 0.0, least))
    return found


def paired_ratio(ours: Sequence[Sample], theirs: Sequence[Sample]) -> float:
    """Median over the repeats of the ratio within one repeat, so that a slow minute hits both alike."""
    return median(a.decisions_per_sec / b.decisions_per_sec for a, b in zip(ours, theirs))


def cost_ratio(ours: Sequence[Sample], theirs: Sequence[Sample]) -> float:
    """Our decisions for the processor time of one of theirs; paired likewise."""
    return round(median(b.us_per_decision / a.us_per_decision for a, b in zip(ours, theirs)), 3)
