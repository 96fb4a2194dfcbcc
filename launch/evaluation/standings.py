"""Mean score, rank and own figures of each contestant, with intervals, from the sums of the workers. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from simul.common.config.matchups import Pairing, result_key
from simul.common.role.report_names import FIRST, GROUPS, MEASURES, OWN_FIGURE, OWN_FIGURE_SQUARE, SECOND
from simul.common.runtime.intervals import t_quantile
from simul.launch.evaluation.openings import distinct_games
from simul.launch.processes.role_reports import Metrics, counts

# `games`, and for each name its mean; NAME_square of MEASURES, and OWN_FIGURE_SQUARE + NAME. `distinct`: how many of
# the games, or groups of games, may differ.
Sums = dict[str, float]
_ROUNDING = 1e-12  # of a mean, as share of it


def pair_standings(figures: Metrics, index: int, seats: int = 2) -> dict[str, dict[str, Any]]:
    """Of pairing number `index`, by `first` and `second`; {} where the game reports no scores."""
    sums, groups = _sums_of(figures, index, seats)
    return {side: _described(found, [_part(groups, side)]) for side, found in sums.items()}


def seat_score(figures: Metrics, index: int, seat: int, seats: int) -> dict[str, Any]:
    """`mean_score` and `score_95` of `first` at one seat of pairing number `index`; {} where there are no scores."""
    found = counts(figures, "standings", result_key(index, seat))
    sums = _counted(found, distinct_games(figures, index), seats)
    return {"mean_score": sums["score"], "score_95": _interval(sums, [sums], "score", "score_square")} if sums else {}


def contestant_standings(figures: Metrics, pairings: Sequence[Pairing]) -> list[dict[str, Any]]:
    """Of every contestant over everything it played; [] where the game reports no scores.

    Mirrored games of all pairings share their seeds, so a contestant's luck in one is its luck in the others.
    """
    played: dict[str, list[tuple[Sums, Sums]]] = {}
    for index, pairing in enumerate(pairings):
        found, groups = _sums_of(figures, index, pairing.seats)
        for side, contestant in ((FIRST, pairing.first), (SECOND, pairing.second)):
            if side in found:
                played.setdefault(contestant.label, []).append((found[side], _part(groups, side)))
    return [
        {"label": label, **_described(_added([sums for sums, _ in parts]), [groups for _, groups in parts])}
        for label, parts in played.items()
    ]


def _sums_of(figures: Metrics, index: int, seats: int) -> tuple[dict[str, Sums], Sums]:
    """Sums of pairing number `index` over its games, by side, and over its groups; {} where there are none."""
    distinct = distinct_games(figures, index)
    found = {side: counts(figures, "standings", f"{index}/{side}") for side in (FIRST, SECOND)}
    sums = {side: _counted(each, distinct, 1) for side, each in found.items() if each}
    return sums, _counted(counts(figures, "standings", f"{index}/{GROUPS}"), distinct, seats)


def _counted(sums: Sums, distinct: int | None, games_each: int) -> Sums:
    """`sums` with `distinct`, where so many games differ; each that is counted there stands for `games_each` of them.

    One that comes again tells nothing new.
    """
    if not sums:
        return {}
    return {**sums, "distinct": sums["games"] if distinct is None else min(sums["games"], -(-distinct // games_each))}


def _part(groups: Sums, side: str) -> Sums:
    """One contestant's means over groups of mirrored games; {} without groups."""
    if not groups:
        return {}
    own = {name.removeprefix(f"{side}."): value for name, value in groups.items() if name.startswith(f"{side}.")}
    return {"games": groups["games"], "distinct": groups["distinct"], **own}


def _added(parts: Sequence[Sums]) -> Sums:
    """Means over all parts, weighted by their games."""
    games = sum(part["games"] for part in parts)
    names = [name for name in parts[0] if name not in ("games", "distinct")]
    distinct = sum(part["distinct"] for part in parts)
    means = {name: sum(part[name] * part["games"] for part in parts) / games for name in names}
    return {"games": games, "distinct": distinct, **means}


def _described(sums: Sums, groups: Sequence[Sums]) -> dict[str, Any]:
    """Means and 95% intervals. Where games are mirrored these come from the spread of the groups of each pairing."""
    spread = groups if all(part.get("games", 0) > 1 for part in groups) else [sums]
    found: dict[str, Any] = {"games": int(sums["games"]), "groups": int(sum(part.get("games", 0) for part in groups))}
    for name in MEASURES:
        found |= {f"mean_{name}": sums[name], f"{name}_95": _interval(sums, spread, name, f"{name}_square")}
    names = [name.removeprefix(OWN_FIGURE) for name in sums if name.startswith(OWN_FIGURE)]
    intervals = {name: _interval(sums, spread, f"{OWN_FIGURE}{name}", f"{OWN_FIGURE_SQUARE}{name}") for name in names}
    figures = {name: sums[f"{OWN_FIGURE}{name}"] for name in names}
    return {**found, "first_alone": sums["win"], "figures": figures, "figures_95": intervals}


def _interval(sums: Sums, spread: Sequence[Sums], name: str, square: str) -> tuple[float, float] | None:
    """The mean of `sums` -+ t standard errors, Student's t; within [0, 1] where all that was counted is.

    None without squares, and where fewer than two of a part of `spread` differ or all are alike: they show no spread.

    The standard error is the mean of those of the parts: right where their luck is the same, too large where it is not.
    """
    if any(part["distinct"] < 2 or square not in part for part in spread):
        return None
    error = sum(part["games"] * _standard_error(part, name, square) for part in spread)
    if not error:
        return None
    freedom = min(int(part["distinct"]) for part in spread) - 1
    margin = t_quantile(freedom) * error / sum(part["games"] for part in spread)
    low, high = sums[name] - margin, sums[name] + margin
    # x * x <= x holds within [0, 1] alone: shares of games or hands
    shares = all(part[square] <= part[name] + _ROUNDING for part in spread)
    return (max(low, 0.0), min(high, 1.0)) if shares else (low, high)


def _standard_error(sums: Sums, name: str, square: str) -> float:
    variance = sums[square] - sums[name] ** 2
    return math.sqrt(variance / (sums["distinct"] - 1)) if variance > _ROUNDING * sums[square] else 0.0


def standing_text(standing: Mapping[str, Any]) -> str:
    """`mean score 0.52 (95%: 0.41 to 0.63), mean rank 1.70 (95%: 1.61 to 1.79); foul 0.120 (95%: 0.100 to 0.140)`."""
    parts = [f"mean {name} {_with_interval(standing[f'mean_{name}'], standing[f'{name}_95'])}" for name in MEASURES]
    intervals = standing["figures_95"]
    figures = [f"{name} {_with_interval(value, intervals[name], 3)}" for name, value in standing["figures"].items()]
    return "; ".join([", ".join(parts), *([", ".join(figures)] if figures else [])])


def seats_text(result: Mapping[str, Any]) -> str:
    """`mean score by seat: p1 0.52 (95%: 0.41 to 0.63), p2 0.40 (...)`; "" where the game reports no scores."""
    scores = {name: part for name, part in result.items() if name.startswith("as_p") and "mean_score" in part}
    parts = [
        f"{name.removeprefix('as_')} {_with_interval(part['mean_score'], part['score_95'])}"
        for name, part in scores.items()
    ]
    return f"mean score by seat: {', '.join(parts)}" if parts else ""


def _with_interval(mean: float, interval: Sequence[float] | None, digits: int = 2) -> str:
    if interval is None:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} (95%: {interval[0]:.{digits}f} to {interval[1]:.{digits}f})"
