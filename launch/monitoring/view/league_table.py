"""The payoff matrix and the ratings of a run's league as one table, cut to the terminal's width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simul.common.runtime.terminal_text import printable
from simul.launch.ratings.league_file import LeagueFigures, Rate

MOST_ROWS = 10
LONGEST_LABEL = 16  # columns of the terminal
GAP = 2
TITLE = "League: win rate of the row against the column (95%)"
_INTERVAL = len("0.55-0.67")


def league_table(league: LeagueFigures, width: int) -> RenderableType:
    """Members from the latest self on: Elo, and win rate of the row against the column, with 95% intervals.

    `width`: columns of the terminal. A line says how many members are left out.
    """
    labels = [member["label"] for member in league.members]
    rows, ratings = league.members[:MOST_ROWS], [_elo(member) for member in league.members[:MOST_ROWS]]
    left = width - _wide([_label(member["label"]) for member in rows]) - _wide([*ratings, "Elo (95%)"])
    columns: list[str] = []
    for label in labels:
        left -= max(cell_len(_label(label)), _INTERVAL) + GAP
        if left < 0:
            break
        columns.append(label)
    table = Table(box=None, padding=(0, GAP, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True, overflow="ellipsis", max_width=LONGEST_LABEL)
    table.add_column("Elo (95%)", no_wrap=True)
    for label in columns:
        table.add_column(_label(label), no_wrap=True)
    for member, rating in zip(rows, ratings):
        cells = (league.rates.get((member["label"], column)) for column in columns)
        table.add_row(_label(member["label"]), rating, *map(_cell, cells))
    return Group(Text(TITLE), table, *_left_out(len(labels), len(rows), len(columns)))


def _wide(texts: list[str]) -> int:
    return max(cell_len(line) for text in texts for line in text.splitlines()) + GAP


def _label(label: str) -> str:
    text = printable(label)
    if cell_len(text) <= LONGEST_LABEL:
        return text
    while cell_len(text) > LONGEST_LABEL - 1:
        text = text[:-1]
    return f"{text}…"


def _elo(member: Mapping[str, Any]) -> str:
    low, high = member["elo_95"]
    return f"{member['elo']:+.0f}\n{low:+.0f} to {high:+.0f}"


def _cell(rate: Rate | None) -> str:
    return "" if rate is None else f"{rate.win_rate:.2f}\n{rate.low:.2f}-{rate.high:.2f}"


def _left_out(members: int, rows: int, columns: int) -> list[Text]:
    parts = [f"{members - shown} of {members} {what}" for shown, what in ((rows, "rows"), (columns, "columns"))
             if shown < members]  # fmt: skip
    return [Text(f"Left out: {' and '.join(parts)}; `simul status --json` has all.")] if parts else []
