"""The result of a round robin as tables. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from simul.launch.evaluation.result import missing_text
from simul.launch.ratings.mirrored_games import wilson_of_games


def matrix_table(matrix: Mapping[str, Any]) -> Table:
    """A table, row against column: win rate, its Wilson interval, and the row's outcomes."""
    labels = [contestant["label"] for contestant in matrix["contestants"]]
    cells = {}
    for pair in matrix["pairs"]:
        first, second = pair["first"], pair["second"]
        cells[first, second] = _cell(pair["wins"], pair["losses"], pair)
        cells[second, first] = _cell(pair["losses"], pair["wins"], pair)
    table = Table(title="Win rate of the row against the column (95%)", caption=_missing(matrix), show_lines=True)
    table.add_column("greedy games")
    for label in labels:
        table.add_column(label, justify="right", no_wrap=True)
    for row in labels:
        table.add_row(row, *(cells.get((row, column), "") for column in labels))
    return table


def ratings_table(ratings: Sequence[Mapping[str, Any]]) -> Table:
    """Ratings, best first, with the games of each."""
    table = Table(title="Ratings over all pairs that were played")
    table.add_column("contestant", no_wrap=True)
    for column in ("Elo (95%)", "games"):
        table.add_column(column, justify="right", no_wrap=True)
    for rating in ratings:
        table.add_row(rating["label"], _rating(rating), f"{rating['games']:,}")
    return table


def standings_table(matrix: Mapping[str, Any]) -> Table:
    """A table of the contestants over everything they played: Elo and, where the game has scores, score and rank."""
    standings = {standing["label"]: standing for standing in matrix["standings"]}
    names = dict.fromkeys(name for standing in standings.values() for name in standing["figures"])
    scores = ["score (95%)", "rank (95%)"] if standings else []
    columns = ["Elo (95%)", *scores, *(f"{name}\n(95%)" for name in names)]
    table = Table(title="Over everything played")
    table.add_column("contestant", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for rating in matrix["ratings"]:
        cells = [_rating(rating)]
        if standing := standings.get(rating["label"]):
            cells += [_mean(standing[f"mean_{name}"], standing[f"{name}_95"]) for name in ("score", "rank")]
            figures, intervals = standing["figures"], standing["figures_95"]
            cells += [_figure(figures[name], intervals[name]) if name in figures else "" for name in names]
        table.add_row(rating["label"], *cells)
    return table


def _rating(rating: Mapping[str, Any]) -> str:
    low, high = rating["elo_95"]
    return f"{rating['elo']:+.0f} ({low:+.0f} to {high:+.0f})"


def _mean(mean: float, interval: Sequence[float] | None) -> str:
    return f"{mean:.2f}" if interval is None else f"{mean:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"


def _figure(mean: float, interval: Sequence[float] | None) -> str:
    """In two lines: a game may have many figures."""
    return f"{mean:.3f}" if interval is None else f"{mean:.3f}\n({interval[0]:.3f} to {interval[1]:.3f})"


def _cell(wins: int, losses: int, pair: Mapping[str, Any]) -> str:
    if not pair["battles"]:
        return "not played"
    low, high = wilson_of_games(wins, pair["battles"], pair["effective_games"])
    truncated = f" {pair['truncated']} cut" if pair["truncated"] else ""
    rate = wins / pair["battles"]
    return f"{rate:.3f} ({low:.3f}-{high:.3f})\n{wins} won {losses} lost {pair['ties']} tied{truncated}"


def _missing(matrix: Mapping[str, Any]) -> str:
    return missing_text(sum(pair["wanted"] - pair["battles"] for pair in matrix["pairs"]), "battles", matrix)
