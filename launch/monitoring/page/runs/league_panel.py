"""Payoffs and ratings of a run's league.json as rows of texts, for the page."""

from __future__ import annotations

from typing import Any

from simul.launch.monitoring.page.runs.short_text import short_label
from simul.launch.ratings.league_file import LeagueFigures, Rate

MOST_MEMBERS = 24


def league_panel(league: LeagueFigures | None) -> dict[str, Any]:
    """`about`: a sentence; `columns`: labels; `rows`: label, Elo, interval, games, a cell each. {} without games."""
    if league is None:
        return {}
    members = league.members[:MOST_MEMBERS]
    labels = [member["label"] for member in members]
    rows = []
    for member in members:
        low, high = member["elo_95"]
        cells = [_cell(league.rates.get((member["label"], column))) for column in labels]
        rating = [f"{member['elo']:+.0f}", f"{low:+.0f} to {high:+.0f}", f"{member['games']:,}"]
        rows.append([short_label(member["label"]), *rating, *cells])
    return {"about": _about(league), "columns": [short_label(label) for label in labels], "rows": rows}


def _about(league: LeagueFigures) -> str:
    left_out = len(league.members) - MOST_MEMBERS
    more = f" {left_out} more members are left out; simul status --json has all." if left_out > 0 else ""
    return f"Win rate of the row against the column, with its 95% interval.{more}"


def _cell(rate: Rate | None) -> str:
    return "" if rate is None else f"{rate.win_rate:.2f} ({rate.low:.2f} to {rate.high:.2f})"
