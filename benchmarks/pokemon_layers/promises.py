"""The promises about speed, judged by one run. Pure.

Ratios are to the stock simulator: a faster accelerated one must not make the other layers look worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from benchmarks.harness.promises import Promise
from benchmarks.pokemon_layers.layer import Sample

LEAST_LEARNED_SHARE = 0.95
LEAST_PARAMETERS = 1_000_000
# all of `make up`: which layer it is, the other layer, the least ratio, and what the line is called
RATIOS = (
    ("learning_python", "simulator", 0.36, "make up, encoder: python / simulator alone, stock"),
    ("learning_python", "poke_env", 2.7, "make up, encoder: python / poke-env over a local server"),
    ("learning", "simulator", 0.55, "make up, encoder: host / simulator alone, stock"),
    ("learning", "poke_env", 4.5, "make up, encoder: host / poke-env over a local server"),
)
# microseconds of one core a decision: the layer, the one below it that is taken off, the most, and the line's name
BUDGET = (
    ("ipc", "", 195.0, "simulator and IPC, us"),
    ("parsing", "ipc", 110.0, "parsing and request, us"),
    ("encoding_bare", "parsing", 100.0, "encoding and mask (encoder: python), us"),
    ("encoding", "encoding_bare", 100.0, "damage (encoder: python), us"),
    ("host_encoding", "", 505.0, "all four together (encoder: host), us"),
    ("host_encoding", "host_encoding_bare", 100.0, "damage (encoder: host), us"),
)
SHARES = (  # of processes of all of `make up`
    ("simul-inference-0", 25.0, "serving, us"),
    ("simul-learner-0", 110.0, "learning, us"),
)


def promises(samples: Mapping[str, Sequence[Sample]]) -> list[Promise]:
    """Every promise that can be judged by the layers that were measured."""
    return [*_ratios(samples), *_budget(samples), *_of_learning(samples.get("learning", ()))]


def paired_ratio(ours: Sequence[Sample], theirs: Sequence[Sample]) -> float:
    """Median over the repeats of the ratio within one repeat, so that a slow minute hits both alike."""
    return median(a.decisions_per_sec / b.decisions_per_sec for a, b in zip(ours, theirs))


def cost_ratio(ours: Sequence[Sample], theirs: Sequence[Sample]) -> float:
    """Our decisions for the processor time of one of theirs; paired likewise."""
    return round(median(b.us_per_decision / a.us_per_decision for a, b in zip(ours, theirs)), 3)


def added_cost(upper: Sequence[Sample], lower: Sequence[Sample]) -> float:
    """Microseconds of one core that `upper` takes beyond `lower`; paired likewise."""
    return median(a.us_per_decision - b.us_per_decision for a, b in zip(upper, lower))


def _ratios(samples: Mapping[str, Sequence[Sample]]) -> Iterator[Promise]:
    for ours, theirs, least, name in RATIOS:
        pair = samples.get(ours), samples.get(theirs)
        if pair[0] and pair[1]:
            yield Promise(name, paired_ratio(pair[0], pair[1]), least, by_cpu=cost_ratio(pair[0], pair[1]))


def _budget(samples: Mapping[str, Sequence[Sample]]) -> Iterator[Promise]:
    for layer, below, most, name in BUDGET:
        upper, lower = samples.get(layer), samples.get(below)
        if upper and not below:
            yield Promise(name, median(sample.us_per_decision for sample in upper), most, at_least=False)
        elif upper and lower:
            yield Promise(name, added_cost(upper, lower), most, at_least=False)


def _of_learning(learning: Sequence[Sample]) -> Iterator[Promise]:
    """A figure that is missing is a promise that is not kept."""
    if not learning:
        return
    for process, most, name in SHARES:
        shares = [sample.notes.get("us_by_process", {}).get(process, float("inf")) for sample in learning]
        yield Promise(name, median(shares), most, at_least=False)
    for key, least, name in (
        ("learned_share", LEAST_LEARNED_SHARE, "share of the decisions learned from"),
        ("parameters", LEAST_PARAMETERS, "parameters of the network"),
    ):
        values = [float(sample.notes[key]) for sample in learning if sample.notes.get(key) is not None]
        yield Promise(name, median(values) if values else 0.0, least)
