"""The picture of a sweep. A module of its own, because it imports matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from simul.launch.sweep.study import Tried

matplotlib.use("Agg")
matplotlib.rcParams["text.parse_math"] = False

PICTURE = "sweep.png"
MOST_PANELS = 7  # keys whose values are drawn
ACROSS, SIDE = 4, 3.4  # panels in a row; inches of one
COLORS = {"finished": "#1f77b4", "pruned": "#bbbbbb", "failed": "#d62728", "running": "#ff7f0e"}


def draw_picture(folder: Path, tried: Sequence[Tried], shares: Mapping[str, float]) -> Path:
    """sweep.png: scores in order, how much each key mattered, and the score over each key's values. Raises OSError."""
    scored = [each for each in tried if each.steps or each.score is not None]
    names = list(shares) or list(dict.fromkeys(key for each in scored for key in each.values))
    panels = 1 + bool(shares) + len(names[:MOST_PANELS])
    rows = math.ceil(panels / ACROSS)
    figure = Figure(figsize=(SIDE * min(panels, ACROSS), SIDE * rows), layout="constrained")
    axes = [figure.add_subplot(rows, min(panels, ACROSS), place + 1) for place in range(panels)]
    _draw_scores(axes[0], scored)
    if shares:
        ordered = sorted(shares.items(), key=lambda item: item[1])
        axes[1].barh([key for key, _ in ordered], [share for _, share in ordered], color=COLORS["finished"])
        _label(axes[1], "share of the difference in scores", "", "What mattered (PED-ANOVA)")
    for each, name in zip(axes[1 + bool(shares) :], names):
        _draw_values(each, scored, name)
    figure.savefig(folder / PICTURE, dpi=120)
    return folder / PICTURE


def _draw_scores(axes: Axes, scored: Sequence[Tried]) -> None:
    for state, color in COLORS.items():
        own = [each for each in scored if each.state == state]
        if own:
            axes.scatter([each.number for each in own], [_newest(each) for each in own], c=color, s=14, label=state)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _label(axes, "trial", "score", "Scores; of pruned ones the last")
    if scored:
        axes.legend(frameon=False)


def _draw_values(axes: Axes, scored: Sequence[Tried], name: str) -> None:
    own = [each for each in scored if name in each.values and each.state in ("finished", "pruned")]
    own.sort(key=lambda each: _order(each.values[name]))  # of choices, the axis has that order
    values = [each.values[name] for each in own]
    if (
        not any(isinstance(value, str) for value in values)
        and values
        and min(values) > 0
        and max(values) > 20 * min(values)
    ):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.scatter(values, [_newest(each) for each in own], c=[COLORS[each.state] for each in own], s=14)
    _label(axes, name, "score", "")


def _order(value: object) -> tuple[bool, float, str]:
    """Numbers by value, also those that are written as choices, before other text."""
    try:
        return (False, float(str(value)), "")
    except ValueError:
        return (True, 0.0, str(value))


def _newest(tried: Tried) -> float:
    return tried.score if tried.score is not None else tried.steps[-1][1]


def _label(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
