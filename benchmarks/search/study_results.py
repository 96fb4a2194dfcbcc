"""What `benchmarks.search.study` says of values and choices: tables with 95% intervals. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.report import markdown_table
from simul.common.runtime.intervals import wilson

BINS = 10
STAGE_PLIES = 4
RESAMPLES = 1000
POLICY, TRUTH = "policy", "truth"
Floats = NDArray[np.float64]
Statistic = Callable[[Floats], float]  # of a weight for each position


@dataclass(frozen=True)
class Choices:
    """What was chosen in one position, and what it is worth.

    Attributes:
        chosen: the action, by who chose it.
        worth: of each action among them, to the seat that acts.
        rank: of the truth's action among the policy's, from 0; legal: number of actions.
    """

    game: int
    ply: int
    chosen: Mapping[str, int]
    worth: Mapping[int, float]
    rank: int
    legal: int

    def loss(self, name: str) -> float:
        """How much less `name`'s action is worth than the truth's; below 0 where it is worth more."""
        return self.worth[self.chosen[TRUTH]] - self.worth[self.chosen[name]]


def interval(games: NDArray[np.int64], statistic: Statistic) -> tuple[float, float]:
    """95% bootstrap interval over whole games: the positions of one game share its outcome."""
    names, place = np.unique(games, return_inverse=True)
    draw = np.random.default_rng(0)
    drawn = draw.multinomial(len(names), np.full(len(names), 1 / len(names)), size=RESAMPLES).astype(np.float64)
    low, high = np.nanpercentile([statistic(weights[place]) for weights in drawn], (2.5, 97.5))
    return float(low), float(high)


def mean_of(found: Floats) -> Statistic:
    """Weighted mean; nan without weight."""
    return lambda weights: float(weights @ found / weights.sum()) if weights.any() else float("nan")


def explained_variance(predicted: Floats, outcome: Floats) -> Statistic:
    """1 - Var(outcome - predicted) / Var(outcome); nan where all outcomes are equal."""

    def statistic(weights: Floats) -> float:
        variance = _variance(outcome, weights)
        return 1 - _variance(outcome - predicted, weights) / variance if variance > 0 else float("nan")

    return statistic


def _variance(found: Floats, weights: Floats) -> float:
    mean = weights @ found / weights.sum()
    return float(weights @ (found - mean) ** 2 / weights.sum())


def calibration_table(games: NDArray[np.int64], predicted: Floats, outcome: Floats) -> str:
    """Ten equal bins of values from -1 to 1, and all of them: the mean of what was predicted, and of the outcomes."""
    bins = np.clip(((predicted + 1) * BINS / 2).astype(int), 0, BINS - 1)
    parts = [(f"{2 * at / BINS - 1:.1f} to {2 * (at + 1) / BINS - 1:.1f}", bins == at) for at in range(BINS)]
    rows = []
    for title, inside in [*parts, ("all", bins >= 0)]:
        figures = ["-"] * 3
        if inside.any():
            apart = mean_of((outcome - predicted)[inside])
            difference = _figure(apart(np.ones(inside.sum())), interval(games[inside], apart))
            figures = [f"{predicted[inside].mean():.2f}", f"{outcome[inside].mean():.2f}", difference]
        rows.append([title, f"{inside.sum():,}", *figures])
    return markdown_table(["value", "positions", "predicted", "found", "found - predicted"], rows)


def variance_table(
    games: NDArray[np.int64], plies: NDArray[np.int64], values: Mapping[str, Floats], outcome: Floats
) -> str:
    """Explained variance by plies in groups of four, and of all; a column for each kind of value."""
    stages = [
        (f"{first} to {first + STAGE_PLIES - 1}", plies // STAGE_PLIES * STAGE_PLIES == first)
        for first in np.unique(plies // STAGE_PLIES * STAGE_PLIES)
    ]
    rows = []
    for title, inside in [*stages, ("all", plies >= 0)]:
        cells = []
        for predicted in values.values():
            statistic = explained_variance(predicted[inside], outcome[inside])
            cells.append(_figure(statistic(np.ones(inside.sum())), interval(games[inside], statistic)))
        rows.append([title, f"{inside.sum():,}", *cells])
    return markdown_table(["plies", "positions", *values], rows)


def choices_table(rows: Sequence[Choices], stages: Sequence[tuple[int, int]]) -> str:
    """For each chooser: how often it differs from the policy, is better then, and agrees with the truth; and its loss.

    Args:
        stages: first and last ply of each.
    """
    lines = []
    for name in rows[0].chosen:
        differ = [row for row in rows if row.chosen[name] != row.chosen[POLICY]]
        right = [row for row in differ if row.loss(name) < row.loss(POLICY)]
        agree = [row for row in rows if row.chosen[name] == row.chosen[TRUTH]]
        cells = [_share(differ, rows), _share(right, differ), _share(agree, rows)]
        for first, last in ((0, 10**6), *stages):
            inside = [row for row in rows if first <= row.ply <= last]
            loss = mean_of(np.array([row.loss(name) for row in inside]))
            games = np.array([row.game for row in inside])
            cells.append(_figure(loss(np.ones(len(inside))), interval(games, loss)) if inside else "-")
        lines.append([name, *cells])
    heads = ["chosen by", "differs from the policy", "of these better", "as the truth", "loss",
             *(f"plies {first} to {last}" for first, last in stages)]  # fmt: skip
    return markdown_table(heads, lines)


def rank_line(rows: Sequence[Choices], considered: int) -> str:
    """Where the truth's choice stands among the policy's."""
    rank, legal = np.median([row.rank for row in rows]) + 1, np.median([row.legal for row in rows])
    outside = [row for row in rows if row.rank >= considered]
    return (
        f"choices of the truth that are not among the policy's first {considered}: "
        f"{_share(outside, rows)}; "
        f"in the median it chooses the policy's number {rank:.0f} of {legal:.0f} actions"
    )


def _share(some: Sequence[Choices], among: Sequence[Choices]) -> str:
    return _figure(len(some) / len(among), wilson(len(some), len(among))) if among else "-"


def _figure(found: float, ends: tuple[float, float]) -> str:
    return f"{found:.3f} [{ends[0]:.3f}, {ends[1]:.3f}]"
