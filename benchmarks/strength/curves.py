"""The win rates of rows while they trained, as a picture: of each run's own evaluations, and of the matches at its end.

Evaluations are greedy, of 100 games by default, and of a rate that has not fallen yet: only the last point of a line is
of a run that ended its schedule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.strength.results import read_match
from benchmarks.strength.rows import Row
from simul.common.checkpoints.meta import checkpoint_folders, read_meta
from simul.launch.monitoring.curves.curves_csv import past_evaluations

STYLES = ("-", "--", ":", "-.")

Point = tuple[int, float, float, float]  # decisions learned from, win rate, ends of its interval


def curve(folder: Path, opponent: str) -> list[Point]:
    """Of the run in a row's folder, by decisions; empty where it was never evaluated against this opponent."""
    points: dict[int, Point] = {}
    for evaluation in past_evaluations(folder / "run"):
        names = ("decisions_learned", *(f"win_rate{end}/{opponent}" for end in ("", "_low", "_high")))
        learned, rate, low, high = figures = [evaluation.get(name, math.nan) for name in names]
        if all(map(math.isfinite, figures)):
            points[int(learned)] = (int(learned), rate, low, high)
    if (match := read_match(folder, opponent)) and (newest := checkpoint_folders(folder / "run" / "checkpoints")):
        decisions = read_meta(newest[0]).decisions
        points[decisions] = (decisions, match.win_rate, *match.wilson_95)
    return sorted(points.values())


def draw(rows: Sequence[Row], folder: Path, file: Path) -> bool:
    """A line for each row and opponent: a colour for each opponent, a style for each row. False: none has any."""
    curves = {(row.name, name): curve(folder / row.name, name) for row in rows for name in row.opponents}
    curves = {key: points for key, points in curves.items() if points}
    if not curves:
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    names, opponents = ([*dict.fromkeys(each)] for each in zip(*curves, strict=True))
    for (name, opponent), points in curves.items():
        decisions, rates, low, high = zip(*points, strict=True)
        colour, style = f"C{opponents.index(opponent)}", STYLES[names.index(name) % len(STYLES)]
        axes.plot(decisions, rates, style, color=colour, marker=".", label=f"{name}, {opponent}")
        axes.fill_between(decisions, low, high, color=colour, alpha=0.08, linewidth=0)
    axes.set(xlabel="decisions learned from", ylabel="win rate", ylim=(0.5, 1), xlim=(0, None))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g} M")
    axes.grid(color="0.9")
    axes.legend(loc="lower right", fontsize="small", ncols=2)
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
    return True
