"""Which curves the page draws, and in which chart. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

SELF_PLAY = "win_rate/self_play"  # half of its games are won, whatever was learned
MOST_LINES = 12  # of a chart: a run may have met any number of opponents


class ChartTemplate(NamedTuple):
    """`curves`: templates of `figures.CURVES`; `scale`: what their values are multiplied by for `unit`.

    `labels`: of the lines; default: the curves' names.
    """

    title: str
    unit: str
    curves: tuple[str, ...]
    labels: tuple[str, ...] = ()
    scale: float = 1.0


CHARTS = (
    ChartTemplate(
        "decisions", "a second", ("run/decisions_per_sec", "learner/decisions_per_sec"), ("answered", "learned")
    ),
    ChartTemplate("win rate, recent games", "95% interval", ("win_rate/<opponent>",)),
    ChartTemplate("evaluation: win rate", "95% interval", ("evaluation/win_rate/<opponent>",)),
    ChartTemplate("evaluation: score", "", ("evaluation/score", "evaluation/best_score")),
    ChartTemplate("mean return", "", ("episodes/return_mean",)),
    ChartTemplate("the game", "", ("game/<figure>",)),
    ChartTemplate("latency", "ms", ("server/latency_us_p50", "server/latency_us_p99"), ("p50", "p99"), 0.001),
    ChartTemplate("mean batch", "rows", ("server/mean_batch",)),
    ChartTemplate("losses", "", ("learner/policy_loss", "learner/value_loss"), ("policy", "value")),
    ChartTemplate("entropy", "", ("learner/entropy",)),
    ChartTemplate("change of the policy", "", ("learner/kl", "learner/clip_fraction")),
    ChartTemplate("explained variance", "", ("learner/explained_variance",)),
    ChartTemplate("policy lag", "versions", ("learner/policy_lag_mean", "learner/policy_lag_max"), ("mean", "max")),
    ChartTemplate("length of episodes", "decisions", ("episodes/length_mean",)),
    ChartTemplate(
        "time of the workers", "share",
        ("worker/wait_share", "worker/envs_share", "worker/messages_share", "worker/other_share"),
        ("waiting", "envs", "messages", "other"),
    ),
    ChartTemplate("steps dropped", "", ("dropped/steps/<cause>",)),
    ChartTemplate("processor", "% of a core", ("process/<role>/cpu_percent",)),
    ChartTemplate("memory", "MiB", ("process/<role>/memory_mb",)),
)  # fmt: skip


class Line(NamedTuple):
    """One line of a chart: a column of curves.csv, and those of its interval, "" without."""

    label: str
    column: str
    low: str = ""
    high: str = ""


class Chart(NamedTuple):
    """A chart of one run, with the lines that its curves.csv has."""

    title: str
    unit: str
    scale: float
    lines: tuple[Line, ...]

    def columns(self) -> list[str]:
        """Those of all lines: value, low, high, where a line has them."""
        return [column for line in self.lines for column in (line.column, line.low, line.high) if column]


def charts_of(columns: Sequence[str]) -> list[Chart]:
    """The charts of a curves.csv with these columns."""
    known = frozenset(columns)
    found = []
    for template in CHARTS:
        labels = template.labels or [curve.rpartition("/")[2].replace("_", " ") for curve in template.curves]
        each = (_lines(curve, label, columns, known) for curve, label in zip(template.curves, labels))
        lines = list(chain.from_iterable(each))[:MOST_LINES]
        if lines:
            found.append(Chart(template.title, template.unit, template.scale, tuple(lines)))
    return found


def _lines(curve: str, label: str, columns: Sequence[str], known: frozenset[str]) -> list[Line]:
    if "<" not in curve:
        return [Line(label, curve)] if curve in known else []
    pattern = re.compile("([^/]+)".join(map(re.escape, re.split(r"<\w+>", curve))))
    lines = []
    for column in columns:
        if column != SELF_PLAY and (found := pattern.fullmatch(column)):
            family, _, name = column.rpartition("/")
            low, high = f"{family}_low/{name}", f"{family}_high/{name}"
            lines.append(Line(found[1], column, *((low, high) if low in known and high in known else ())))
    return lines
