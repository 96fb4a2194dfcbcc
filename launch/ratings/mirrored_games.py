"""Outcomes of games, and intervals that hold where games share their seeds. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from simul.common.runtime.intervals import t_quantile, wilson

OUTCOMES = ("wins", "losses", "ties", "truncated")  # of a pairing's first contestant


def count_groups(found: Mapping[str, float], seats: int, distinct: int | None = None) -> dict[str, Any]:
    """Groups of `seats` games with the same seeds, the contestant at each seat once, by how many of them were won.

    The interval is that of the mean over groups, from their sample variance, with Student's t. It counts only as many
    groups as the distinct games make up: one that comes again tells nothing new. None where fewer than two differ or
    all end alike: they show no spread.

    Args:
        found: number of groups by wins in the group: "0", "1", ..., "SEATS".
        distinct: how many of the games differ; None: not counted.
    """
    won = {str(wins): int(found.get(str(wins), 0)) for wins in range(seats + 1)}
    groups = sum(won.values())
    result: dict[str, Any] = {"complete": groups, "won": won, "win_rate": None, "normal_95": None}
    if not groups:
        return result
    rate = sum(count * (int(wins) / seats) for wins, count in won.items()) / groups
    worth = groups if distinct is None else min(groups, -(-distinct // seats))
    if worth < 2:
        return {**result, "win_rate": rate}
    variance = sum(count * (int(wins) / seats - rate) ** 2 for wins, count in won.items()) / groups
    if not variance:
        return {**result, "win_rate": rate}
    margin = t_quantile(worth - 1) * math.sqrt(variance / (worth - 1))
    return {**result, "win_rate": rate, "normal_95": (max(0.0, rate - margin), min(1.0, rate + margin))}


def effective_games(groups: Mapping[str, Any], seats: int) -> float:
    """How many independent games have as wide an interval as these groups of mirrored ones.

    At most the games of the groups, and at least the groups: those are alike where all games of each end alike.
    """
    complete, rate = groups["complete"], groups["win_rate"]
    if complete < 2:
        return float(complete)
    squares = sum(count * (int(wins) / seats - rate) ** 2 for wins, count in groups["won"].items())
    single = rate * (1 - rate)
    if not single:
        return float(complete)
    worth = single * complete * complete / squares if squares else math.inf
    return float(min(max(worth, complete), complete * seats))


def wilson_of_games(wins: int, games: int, worth: float) -> tuple[float, float]:
    """Wilson's interval of wins / games, where the games are worth so many independent ones."""
    return wilson(wins * worth / games, worth) if games else wilson(0, 0)
