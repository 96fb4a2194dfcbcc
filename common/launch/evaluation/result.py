"""The result of an evaluation of one checkpoint, as figures and in words. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simul.common.config.matchups import Pairing, result_key
from simul.common.launch.evaluation.standings import pair_standings, seat_score, seats_text, standing_text
from simul.common.launch.monitoring.intervals import Z_95, wilson
from simul.common.launch.processes.role_reports import Metrics, counts, number

OUTCOMES = ("wins", "losses", "ties", "truncated")  # of a pairing's first contestant


def build_result(
    figures: Metrics, pairing: Pairing | None, wanted: int, *, checkpoint: Path, version: float | None
) -> dict[str, Any]:
    """The result of one checkpoint; `pairing`: its opponent, None in games without opponents.

    Ties and truncated games do not count as wins.
    """
    finished = int(number(figures, "episodes", "finished") or 0)
    result: dict[str, Any] = {
        "checkpoint": str(checkpoint), "policy_version": version, "wanted": wanted, "episodes": finished,
        "aborted": counts(figures, "episodes", "aborted"),
    }  # fmt: skip
    if pairing is None:
        truncated = number(figures, "episodes", "truncated") or 0
        return {**result, "truncated": truncated, **_returns(figures)}
    outcomes = count_outcomes(figures, 0, pairing)
    return {
        **result, "opponent": pairing.second.label, "episodes": sum(outcomes[name] for name in OUTCOMES), **outcomes,
    }  # fmt: skip


def count_outcomes(figures: Metrics, index: int, pairing: Pairing) -> dict[str, Any]:
    """Outcomes of pairing number `index` for its first contestant: in all, by seat, and of mirrored battles."""
    keys = [result_key(index, seat) for seat in range(pairing.seats)]
    by_seat = {
        f"as_p{seat + 1}": {**_tally(counts(figures, "results", key)), **seat_score(figures, key)}
        for seat, key in enumerate(keys)
    }
    both = {name: sum(tally[name] for tally in by_seat.values()) for name in OUTCOMES}
    battles = sum(both.values())
    mirrored, standings = counts(figures, "mirrored", str(index)), pair_standings(figures, index)
    groups = (
        {"pairs": count_pairs(mirrored)} if pairing.seats == 2 else {"groups": count_groups(mirrored, pairing.seats)}
    )
    return {
        **both, "win_rate": both["wins"] / battles if battles else None, "wilson_95": wilson(both["wins"], battles),
        **by_seat, "mirrored": pairing.mirrored, **(groups if pairing.mirrored else {}),
        **({"standings": standings} if standings else {}),
    }  # fmt: skip


def count_pairs(found: Mapping[str, float]) -> dict[str, Any]:
    """Pairs of battles with the same seeds and exchanged seats, by how many of the two were won.

    The interval is that of the mean over pairs, from their sample variance: it holds however the two are correlated.

    Args:
        found: number of pairs by wins in the pair: "0", "1", "2".
    """
    groups = count_groups(found, 2)
    won = groups["won"]
    return {
        "complete": groups["complete"], "both_won": won["2"], "one_won": won["1"], "none_won": won["0"],
        "win_rate": groups["win_rate"], "normal_95": groups["normal_95"],
    }  # fmt: skip


def count_groups(found: Mapping[str, float], seats: int) -> dict[str, Any]:
    """Groups of `seats` games with the same seeds, the contestant at each seat once, by how many of them were won.

    The interval is that of the mean over groups, from their sample variance.

    Args:
        found: number of groups by wins in the group: "0", "1", ..., "SEATS".
    """
    won = {str(wins): int(found.get(str(wins), 0)) for wins in range(seats + 1)}
    groups = sum(won.values())
    result: dict[str, Any] = {"complete": groups, "won": won, "win_rate": None, "normal_95": None}
    if not groups:
        return result
    rate = sum(count * (int(wins) / seats) for wins, count in won.items()) / groups
    if groups < 2:
        return {**result, "win_rate": rate}
    variance = sum(count * (int(wins) / seats - rate) ** 2 for wins, count in won.items()) / (groups - 1)
    margin = Z_95 * math.sqrt(variance / groups)
    return {**result, "win_rate": rate, "normal_95": (max(0.0, rate - margin), min(1.0, rate + margin))}


def _tally(found: Mapping[str, float]) -> dict[str, int]:
    return {name: int(found.get(name, 0)) for name in OUTCOMES}


def _returns(figures: Metrics) -> dict[str, Any]:
    """Mean return of the finished episodes, their standard deviation, and the 95% interval of the mean.

    Lowest and highest only where every single return was reported.
    """
    mean, mean_square = number(figures, "returns", "mean"), number(figures, "returns", "mean_square")
    count = int(number(figures, "returns", "count") or 0)
    found: dict[str, Any] = {"mean_return": mean if count else None, "std_return": None, "t_95": None}
    if count > 1 and mean is not None and mean_square is not None:
        deviation = math.sqrt(max(0.0, mean_square - mean * mean) * count / (count - 1))
        margin = t_quantile(count - 1) * deviation / math.sqrt(count)
        found |= {"std_return": deviation, "t_95": (mean - margin, mean + margin)}
    listed = figures.get("episode_returns") or ()
    if count and len(listed) == count:
        found |= {"lowest_return": min(listed), "highest_return": max(listed)}
    return found


def t_quantile(freedom: int, inside: float = 0.95) -> float:
    """t > 0 so that |T| <= t with probability `inside`, of Student's T with `freedom` >= 1 degrees of freedom."""
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_inside(middle, freedom) < inside else (low, middle)
    return high


def _t_inside(t: float, freedom: int) -> float:
    """P(|T| <= t): the finite series of Abramowitz and Stegun, 26.7.3 (odd) and 26.7.4 (even)."""
    angle = math.atan2(t, math.sqrt(freedom))
    square = math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= (k - 1) / k * square
        total += term
    return (angle + math.sin(angle) * total) * 2 / math.pi if odd else math.sin(angle) * total


def _interval(result: Mapping[str, Any]) -> str:
    if result["t_95"] is None:
        return ""
    low, high = result["t_95"]
    return f" (95%: {low:.2f} to {high:.2f}, Student's t)"


def result_text(result: Mapping[str, Any]) -> str:
    """The result in a few lines."""
    version = result["policy_version"]
    who = f"version {version:.0f}" if version is not None else "the checkpoint"
    missing = result["wanted"] - result["episodes"]
    note = f"\n{missing} of {result['wanted']} episodes were not played to their end." if missing else ""
    if "opponent" not in result:
        mean = "none" if result["mean_return"] is None else f"{result['mean_return']:.2f}"
        return f"{who}: mean return {mean}{_interval(result)} over {result['episodes']} greedy episodes{note}"
    low, high = result["wilson_95"]
    outcomes = ", ".join(f"{result[name]} {name}" for name in OUTCOMES)
    return (
        f"{who} against {result['opponent']}: {outcomes} in {result['episodes']} greedy games; "
        f"win rate {result['win_rate'] or 0:.3f} (95%: {low:.3f} to {high:.3f}){_pairs_text(result)}"
        f"{_standings_text(result)}{note}"
    )


def _standings_text(result: Mapping[str, Any]) -> str:
    own = result.get("standings", {}).get("first")
    lines = [standing_text(own), seats_text(result)] if own else []
    return "".join(f"\n{line}" for line in lines if line)


def _pairs_text(result: Mapping[str, Any]) -> str:
    pairs = result.get("pairs")
    if not pairs or pairs["normal_95"] is None:
        return ""
    low, high = pairs["normal_95"]
    return (
        f"\n{pairs['complete']} pairs of the same battle from both sides: {pairs['both_won']} both won, "
        f"{pairs['one_won']} one, {pairs['none_won']} none (95% from their spread: {low:.3f} to {high:.3f})"
    )
