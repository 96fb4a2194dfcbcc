"""Evaluations that lie in a run directory: who won how often against whom, and ratings.

`checkpoints/best/evaluation.json` is of the evaluations while training; `evaluation.json` is what `simul eval --json`
printed, where somebody put it there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from simul.common.checkpoints.folders import BEST, RESULT_FILE
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import read_regular
from simul.launch.monitoring.page.runs.short_text import short_label, short_text

MOST_ROWS = 100
EVALUATION_BYTES = 8 * 2**20
Interval = tuple[float, float]


class _Pair(msgspec.Struct):
    first: str
    second: str
    battles: int
    win_rate: float | None
    wilson_95: Interval


class _Rating(msgspec.Struct):
    label: str
    elo: float
    elo_95: Interval


class _Evaluation(msgspec.Struct):
    pairs: list[_Pair] = []
    ratings: list[_Rating] = []


class _Rates(msgspec.Struct):
    policy_version: float
    win_rate: dict[str, float] = {}
    win_rate_low: dict[str, float] = {}
    win_rate_high: dict[str, float] = {}


class _Best(msgspec.Struct):
    score: float
    measure: str
    result: _Rates


def played_pairs(root: Path) -> dict[str, Any]:
    """`best`: a sentence about checkpoints/best; `rates`, `ratings`: rows of texts. {} where there is nothing."""
    best = _decode(root / "checkpoints" / BEST / RESULT_FILE, _Best)
    played = _decode(root / "evaluation.json", _Evaluation)
    found: dict[str, Any] = {}
    rates: list[list[str]] = []
    if best is not None:
        version = f"version {best.result.policy_version:.0f}"
        found["best"] = short_text(f"The best checkpoint is {version}: {best.measure} {best.score:.4g}.")
        for name, rate in best.result.win_rate.items():
            low, high = (bounds.get(name, math.nan) for bounds in (best.result.win_rate_low, best.result.win_rate_high))
            rates.append([version, short_label(name), f"{rate:.3f}", _interval((low, high), ".3f"), ""])
    if played is not None:
        rates += [
            [short_label(pair.first), short_label(pair.second),
             f"{pair.win_rate:.3f}", _interval(pair.wilson_95, ".3f"), f"{pair.battles:,}"]
            for pair in played.pairs if pair.win_rate is not None
        ]  # fmt: skip
        if ratings := _ratings(played.ratings):
            found["ratings"] = ratings
    return {**found, "rates": rates[:MOST_ROWS]} if rates else found


def _ratings(ratings: Iterable[_Rating]) -> list[list[str]]:
    rows = [[short_label(each.label), f"{each.elo:+.0f}", _interval(each.elo_95, "+.0f")] for each in ratings]
    return rows[:MOST_ROWS]


def _decode(path: Path, shape: type[Any]) -> Any:
    """None where there is no such file, or it is something else."""
    try:
        return msgspec.json.decode(read_regular(path, EVALUATION_BYTES, links=False), type=shape)
    except (OSError, *DECODE_ERRORS):
        return None


def _interval(bounds: Interval, form: str) -> str:
    return f"{bounds[0]:{form}} to {bounds[1]:{form}}" if all(map(math.isfinite, bounds)) else ""
