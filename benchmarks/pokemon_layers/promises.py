"""The promises about speed, judged by one run. Pure.

Every promise is a share of what a decision costs the stock simulator alone in the same repeat, so that neither a slow
machine nor a slow minute decides. They hold what was found (RESULTS.md, "Speed") with a tenth to spare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from benchmarks.harness.cores import HOSTS
from benchmarks.harness.promises import Promise
from benchmarks.pokemon_layers.layer import Sample

LEAST_LEARNED_SHARE = 0.95
LEAST_PARAMETERS = 1_000_000
# processes of `make up`, by how their names begin: the largest share of the stock simulator's cost
MOST_SHARE = ((HOSTS, 1.17), ("simul-learner", 0.25), ("simul-inference", 0.175), ("simul-worker", 0.1))
MOST_OF_ALL = 1.65


def promises(samples: Mapping[str, Sequence[Sample]]) -> list[Promise]:
    """Every promise that can be judged by the layers that were measured."""
    learning = samples.get("learning", ())
    return [*_shares(learning, samples.get("simulator", ())), *_of_learning(learning)]


def paired_ratio(ours: Sequence[Sample], theirs: Sequence[Sample]) -> float:
    """Median over the repeats of the ratio within one repeat, so that a slow minute hits both alike."""
    return median(a.decisions_per_sec / b.decisions_per_sec for a, b in zip(ours, theirs))


def cost_ratio(ours: Sequence[Sample], theirs: Sequence[Sample]) -> float:
    """Our decisions for the processor time of one of theirs; paired likewise."""
    return round(median(b.us_per_decision / a.us_per_decision for a, b in zip(ours, theirs)), 3)


def _shares(learning: Sequence[Sample], stock: Sequence[Sample]) -> Iterator[Promise]:
    if not learning or not stock:
        return
    for process, most in MOST_SHARE:
        shares = [_cost_of(process, ours) / alone.us_per_decision for ours, alone in zip(learning, stock)]
        yield Promise(f"{process} / simulator alone, stock", median(shares), most, at_least=False)
    shares = [ours.us_per_decision / alone.us_per_decision for ours, alone in zip(learning, stock)]
    yield Promise("all of make up / simulator alone, stock", median(shares), MOST_OF_ALL, at_least=False)


def _cost_of(process: str, sample: Sample) -> float:
    """Microseconds of one core a decision; infinite where the figure is missing."""
    found = [us for name, us in sample.notes.get("us_by_process", {}).items() if name.startswith(process)]
    return sum(found) if found else float("inf")


def _of_learning(learning: Sequence[Sample]) -> Iterator[Promise]:
    """A figure that is missing is a promise that is not kept."""
    if not learning:
        return
    for key, least, name in (
        ("learned_share", LEAST_LEARNED_SHARE, "share of the decisions learned from"),
        ("parameters", LEAST_PARAMETERS, "parameters of the network"),
    ):
        values = [float(sample.notes[key]) for sample in learning if sample.notes.get(key) is not None]
        yield Promise(name, median(values) if values else 0.0, least)
