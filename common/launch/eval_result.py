"""What an evaluation found, as figures and in words. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.launch.snapshot import counts, number
from common.launch.state import Metrics

Z_95 = 1.959964


def result_of(
    figures: Metrics, opponent: str | None, wanted: int, *, checkpoint: Path, version: float | None
) -> dict[str, Any]:
    """What an evaluation found. Ties and truncated games are no wins."""
    finished = int(number(figures, "episodes", "finished") or 0)
    result: dict[str, Any] = {
        "checkpoint": str(checkpoint), "policy_version": version, "wanted": wanted, "episodes": finished,
        "aborted": counts(figures, "episodes", "aborted"),
    }  # fmt: skip
    if opponent is None:
        returns = figures.get("returns") or {}
        truncated = number(figures, "episodes", "truncated") or 0
        return {
            **result,
            "truncated": truncated,
            "mean_return": returns.get("mean") if finished else None,
            **_spread(figures),
        }
    tally = counts(figures, "results", opponent)
    outcomes = {name: int(tally.get(name, 0)) for name in ("wins", "losses", "ties", "truncated")}
    games, wins = sum(outcomes.values()), outcomes["wins"]
    rate = wins / games if games else None
    return {
        **result, "opponent": opponent, "episodes": games, **outcomes,
        "win_rate": rate, "wilson_95": wilson(wins, games),
    }  # fmt: skip


def _spread(figures: Metrics) -> dict[str, Any]:
    listed = figures.get("episode_returns")
    return {"lowest_return": min(listed), "highest_return": max(listed)} if listed else {}


def wilson(wins: int, games: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval of a rate (Wilson 1927)."""
    if not games:
        return 0.0, 1.0
    rate = wins / games
    centre = rate + z * z / (2 * games)
    margin = z * math.sqrt(rate * (1 - rate) / games + z * z / (4 * games * games))
    scale = 1 + z * z / games
    low = (centre - margin) / scale if wins else 0.0  # exactly, where rounding would leave 1e-19
    high = (centre + margin) / scale if wins < games else 1.0
    return low, high


def in_words(result: Mapping[str, Any]) -> str:
    """One or two lines."""
    version = result["policy_version"]
    who = f"version {version:.0f}" if version is not None else "the checkpoint"
    missing = result["wanted"] - result["episodes"]
    note = f"\n{missing} of {result['wanted']} episodes were not played to their end." if missing else ""
    if "opponent" not in result:
        mean = "none" if result["mean_return"] is None else f"{result['mean_return']:.2f}"
        return f"{who}: mean return {mean} over {result['episodes']} greedy episodes{note}"
    low, high = result["wilson_95"]
    outcomes = ", ".join(f"{result[name]} {name}" for name in ("wins", "losses", "ties", "truncated"))
    return (
        f"{who} against {result['opponent']}: {outcomes} in {result['episodes']} greedy battles; "
        f"win rate {result['win_rate'] or 0:.3f} (95%: {low:.3f} to {high:.3f}){note}"
    )
