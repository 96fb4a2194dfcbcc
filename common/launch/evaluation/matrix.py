"""The result of a round robin, as figures and as a table. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from simul.common.config.matchups import Contestant, Pairing
from simul.common.launch.evaluation.result import OUTCOMES, count_outcomes
from simul.common.launch.monitoring.intervals import wilson
from simul.common.launch.processes.role_reports import Metrics, counts


def build_matrix(
    figures: Metrics, contestants: Sequence[Contestant], pairings: Sequence[Pairing], served: Mapping[str, Path],
    versions: Mapping[str, float | None],
) -> dict[str, Any]:  # fmt: skip
    """The result of all pairs. `served`, `versions`: checkpoint and policy_version by policy name."""
    return {
        "contestants": [_described(contestant, served, versions) for contestant in contestants],
        "aborted": counts(figures, "episodes", "aborted"),
        "pairs": [_pair(figures, index, pairing) for index, pairing in enumerate(pairings)],
    }


def _described(
    contestant: Contestant, served: Mapping[str, Path], versions: Mapping[str, float | None]
) -> dict[str, Any]:
    if contestant.bot:
        return {"label": contestant.label, "opponent": contestant.bot}
    return {
        "label": contestant.label,
        "checkpoint": str(served[contestant.policy]),
        "policy_version": versions.get(contestant.policy),
    }


def _pair(figures: Metrics, index: int, pairing: Pairing) -> dict[str, Any]:
    outcomes = count_outcomes(figures, index, pairing)
    names = {"first": pairing.first.label, "second": pairing.second.label, "wanted": pairing.battles}
    return {**names, "battles": sum(outcomes[name] for name in OUTCOMES), **outcomes}


def matrix_table(matrix: Mapping[str, Any]) -> Table:
    """A table, row against column: win rate, its Wilson interval, and the row's outcomes."""
    labels = [contestant["label"] for contestant in matrix["contestants"]]
    cells = {}
    for pair in matrix["pairs"]:
        first, second = pair["first"], pair["second"]
        cells[first, second] = _cell(pair["wins"], pair["losses"], pair)
        cells[second, first] = _cell(pair["losses"], pair["wins"], pair)
    table = Table(title="Win rate of the row against the column (95%)", caption=_missing(matrix), show_lines=True)
    table.add_column("greedy battles")
    for label in labels:
        table.add_column(label, justify="right", no_wrap=True)
    for row in labels:
        table.add_row(row, *(cells.get((row, column), "") for column in labels))
    return table


def _cell(wins: int, losses: int, pair: Mapping[str, Any]) -> str:
    if not pair["battles"]:
        return "not played"
    low, high = wilson(wins, pair["battles"])
    truncated = f" {pair['truncated']} cut" if pair["truncated"] else ""
    rate = wins / pair["battles"]
    return f"{rate:.3f} ({low:.3f}-{high:.3f})\n{wins} won {losses} lost {pair['ties']} tied{truncated}"


def _missing(matrix: Mapping[str, Any]) -> str:
    missing = sum(pair["wanted"] - pair["battles"] for pair in matrix["pairs"])
    return f"{missing} battles were not played to their end." if missing else ""
