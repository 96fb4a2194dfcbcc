"""Elo ratings of all contestants over everything they played: the maximum a posteriori of the Bradley-Terry model.

P(i scores more than j) = 1 / (1 + 10^((R_j - R_i) / 400)). A game counts as the share of its other seats that `first`
beat, those with the same score half; with two seats that is a win, a tie or a loss. As in BayesElo, drawn games that
were not played keep the ratings finite: one for each pair that met. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simul.common.runtime.intervals import Z_95

PRIOR_DRAWS = 1.0
SCALE = 400 / np.log(10)
MOST_STEPS = 100


def elo_ratings(labels: Sequence[str], pairs: Sequence[tuple[str, str, float, float]]) -> list[dict[str, Any]]:
    """Ratings of those that met one, best first, of mean 0, with 95% intervals from the curvature of the posterior.

    Args:
        pairs: (first, second, games, mean share that first beat).
    """
    pairs = [pair for pair in pairs if pair[2]]
    played = {label for first, second, *_ in pairs for label in (first, second)}
    labels = [label for label in labels if label in played]
    if not labels:
        return []
    place = {label: number for number, label in enumerate(labels)}
    met = [(place[first], place[second], games, share) for first, second, games, share in pairs]
    ratings = np.zeros(len(labels))
    for _ in range(MOST_STEPS):
        gradient, curvature = _slope(ratings, met)
        step = np.linalg.pinv(curvature) @ gradient
        ratings += np.clip(step, -1, 1)  # far from the maximum the model is flat
        if np.abs(step).max() < 1e-9:
            break
    ratings -= ratings.mean()
    margins = Z_95 * SCALE * np.sqrt(np.diag(np.linalg.pinv(_slope(ratings, met)[1])))
    found = [
        {"label": label, "elo": float(rating), "elo_95": (float(rating - margin), float(rating + margin))}
        for label, rating, margin in zip(labels, ratings * SCALE, margins)
    ]
    return sorted(found, key=lambda each: -each["elo"])


def _slope(ratings: np.ndarray, met: Sequence[tuple[int, int, float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Gradient [N] and negative second derivative [N, N] of the log posterior, in natural units."""
    gradient, curvature = np.zeros(len(ratings)), np.zeros((len(ratings), len(ratings)))
    for first, second, games, share in met:
        weight, won = games + PRIOR_DRAWS, games * share + PRIOR_DRAWS / 2
        chance = 1 / (1 + np.exp(ratings[second] - ratings[first]))
        pull, bend = won - weight * chance, weight * chance * (1 - chance)
        gradient[first] += pull
        gradient[second] -= pull
        for one, other, sign in ((first, first, 1), (second, second, 1), (first, second, -1), (second, first, -1)):
            curvature[one, other] += sign * bend
    return gradient, curvature


def beaten_share(outcomes: Mapping[str, Any], duel: float | None) -> float:
    """`duel` where the game reports it; else wins, and half of the games that were tied or truncated."""
    if duel is not None:
        return duel
    even = outcomes["ties"] + outcomes["truncated"]
    return float((outcomes["wins"] + even / 2) / max(outcomes["wins"] + outcomes["losses"] + even, 1))
