"""Mean score, rank and own figures of each contestant, with intervals, from the sums of the workers. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from simul.common.config.matchups import Pairing
from simul.common.launch.monitoring.intervals import Z_95
from simul.common.launch.processes.role_reports import Metrics, counts

FIRST, SECOND = "first", "second"
FIGURE = "figure."  # prefix of a game's own figures in the workers' reports
MEASURES = ("score", "rank")
Sums = dict[str, float]  # `games`, and for each name its mean, and NAME_square of MEASURES


def pair_standings(figures: Metrics, index: int) -> dict[str, dict[str, Any]]:
    """Of pairing number `index`, by `first` and `second`; {} where the game reports no scores."""
    groups = counts(figures, "standings", f"{index}/groups")
    found = {side: counts(figures, "standings", f"{index}/{side}") for side in (FIRST, SECOND)}
    return {side: _described(sums, _part(groups, side)) for side, sums in found.items() if sums}


def contestant_standings(figures: Metrics, pairings: Sequence[Pairing]) -> list[dict[str, Any]]:
    """Of every contestant over everything it played; [] where the game reports no scores."""
    played: dict[str, list[tuple[Sums, Sums]]] = {}
    for index, pairing in enumerate(pairings):
        groups = counts(figures, "standings", f"{index}/groups")
        for side, contestant in ((FIRST, pairing.first), (SECOND, pairing.second)):
            if sums := counts(figures, "standings", f"{index}/{side}"):
                played.setdefault(contestant.label, []).append((sums, _part(groups, side)))
    return [
        {"label": label, **_described(_added([sums for sums, _ in parts]), _added([part for _, part in parts]))}
        for label, parts in played.items()
    ]


def _part(groups: Sums, side: str) -> Sums:
    """One contestant's means over groups of mirrored games; {} without groups."""
    if not groups:
        return {}
    own = {name.removeprefix(f"{side}."): value for name, value in groups.items() if name.startswith(f"{side}.")}
    return {"games": groups["games"], **own}


def _added(parts: Sequence[Sums]) -> Sums:
    """Means over all parts, weighted by their games."""
    parts = [part for part in parts if part]
    if not parts:
        return {}
    games = sum(part["games"] for part in parts)
    names = [name for name in parts[0] if name != "games"]
    return {"games": games, **{n: sum(part[n] * part["games"] for part in parts) / games for n in names}}


def _described(sums: Sums, groups: Sums) -> dict[str, Any]:
    """Means and 95% intervals. Where games are mirrored the intervals come from the spread of whole groups."""
    spread = groups if groups.get("games", 0) > 1 else sums
    found: dict[str, Any] = {"games": int(sums["games"]), "groups": int(groups.get("games", 0))}
    for name in MEASURES:
        found |= {f"mean_{name}": sums[name], f"{name}_95": _interval(sums[name], spread, name)}
    names = [name for name in sums if name.startswith(FIGURE)]
    figures = {name.removeprefix(FIGURE): sums[name] for name in names}
    return {**found, "first_alone": sums["win"], "figures": figures}


def _interval(mean: float, spread: Sums, name: str) -> tuple[float, float] | None:
    """`mean` -+ 1.96 standard errors of the mean of `spread`; None for fewer than two."""
    count = spread["games"]
    if count < 2:
        return None
    variance = max(0.0, spread[f"{name}_square"] - spread[name] ** 2) * count / (count - 1)
    margin = Z_95 * math.sqrt(variance / count)
    return mean - margin, mean + margin


def standing_text(standing: Mapping[str, Any]) -> str:
    """`mean score 0.52 (95%: 0.41 to 0.63), mean rank 1.70 (95%: 1.61 to 1.79); foul 0.120`."""
    parts = [f"mean {name} {_with_interval(standing[f'mean_{name}'], standing[f'{name}_95'])}" for name in MEASURES]
    figures = [f"{name} {value:.3f}" for name, value in standing["figures"].items()]
    return "; ".join([", ".join(parts), *([", ".join(figures)] if figures else [])])


def _with_interval(mean: float, interval: Sequence[float] | None) -> str:
    return f"{mean:.2f}" if interval is None else f"{mean:.2f} (95%: {interval[0]:.2f} to {interval[1]:.2f})"
