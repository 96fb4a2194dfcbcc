"""`simul plot`: curves of one or several runs as a picture; runs that differ in their seed alone are one line."""

from __future__ import annotations

import csv
import difflib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib
import msgspec
import numpy as np
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray

from simul.common.config.run_directory import RunDir
from simul.common.launch.monitoring.curve_writers import BASE_COLUMNS, CSV_NAME, read_header
from simul.common.protocol.errors import ConfigError

matplotlib.use("Agg")

# What is drawn where no figure is named: of these, what the runs have.
DEFAULTS = ("evaluation/score", "episodes/return_mean", "win_rate/max_base_power", "win_rate/random",
            "episodes/length_mean", "learner/entropy", "run/decisions_per_sec")  # fmt: skip
AXES = {"decisions": ("decisions", "decisions"), "time": ("training_sec", "training time (s)")}
BANDS = {"minmax": "min to max", "sem": "standard error"}
FORMATS = (".png", ".svg")
POINTS = 400  # of the mean of several runs
WIDTH, HEIGHT = 6.0, 3.6  # inches of one figure
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Curves:
    """curves.csv of one run. `columns`: float64 [rows] by name, nan where a cell is empty. `folder`: resolved."""

    folder: Path
    configuration: str  # the same for runs that differ in their seed alone
    columns: Mapping[str, Values]

    def points(self, figure: str, x: str) -> tuple[Values, Values]:
        """(x, y) of the rows that have the figure; empty arrays where none has."""
        if figure not in self.columns:
            return np.empty(0), np.empty(0)
        across, up = self.columns[x], self.columns[figure]
        known = np.isfinite(across) & np.isfinite(up)
        return across[known], up[known]


@dataclass(frozen=True)
class Line:
    """One line of a picture: the mean of `runs` runs, with a band where there are several of them."""

    label: str
    x: Values
    mean: Values
    low: Values
    high: Values
    runs: int


def plot(
    folders: Sequence[Path], figures: Sequence[str], out: Path, *,
    x: str = "decisions", band: str = "minmax", say: Callable[[str], object] = lambda sentence: None,
) -> list[str]:  # fmt: skip
    """Draw the named figures, or the usual ones, into `out`. Returns the names that were drawn.

    Args:
        x: `decisions` or `time`.
        band: what the band around a mean shows: `minmax` or `sem`, the standard error.
        say: gets a sentence for each figure that some of the runs do not have.

    Raises:
        ConfigError: a run has no curves, no run has a figure of that name, or `out` cannot be written.
    """
    if out.suffix.lower() not in FORMATS:
        raise ConfigError(f"--out {out}: expected a name that ends in {' or '.join(FORMATS)}.")
    runs = [read_curves(folder) for folder in dict.fromkeys(folder.resolve() for folder in folders)]
    names = list(dict.fromkeys(figures)) or [name for name in DEFAULTS if _known(runs, name)]
    for name in names:
        _check_figure(runs, name)
        if left_out := [str(run.folder) for run in runs if not _known([run], name)]:
            say(f"{name}: left out {', '.join(left_out)}, without that figure.")
    if not names:
        raise ConfigError(f"The runs have none of the figures that are drawn by default ({', '.join(DEFAULTS)}).")
    columns = min(len(names), 2)
    rows = -(-len(names) // columns)
    picture = Figure(figsize=(WIDTH * columns, HEIGHT * rows), layout="constrained")
    for place, name in enumerate(names, 1):
        _draw(picture.add_subplot(rows, columns, place), name, lines_of(runs, name, x, band), AXES[x][1], band)
    try:
        picture.savefig(out, dpi=150)
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written: {error.strerror or error}.") from None
    return names


def read_curves(folder: Path) -> Curves:
    """The curves of a run directory. Raises ConfigError where it has none."""
    path = folder / CSV_NAME
    columns = read_header(path)
    if not columns:
        older = " An older version of Simul made it, which wrote learner.csv." * (folder / "learner.csv").exists()
        raise ConfigError(
            f"{folder} has no curves: expected {path}, which a run writes while it trains, unless `metrics` in its "
            f"configuration leaves csv out.{older}"
        )
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            whole = [line for line in file if line.endswith("\n")]  # a run may be writing the last one
            rows = list(csv.reader(whole))[1:]
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    cells = np.full((len(rows), len(columns)), np.nan)
    for number, row in enumerate(rows):
        for place, cell in enumerate(row[: len(columns)]):
            cells[number, place] = _number(cell)
    return Curves(folder.resolve(), _configuration(folder), dict(zip(columns, cells.T)))


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


def _configuration(folder: Path) -> str:
    """The same for two runs whose configurations differ in their seed alone; the folder where it cannot be read."""
    try:
        config = RunDir(folder).read_config()
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError, ConfigError):
        return str(folder.resolve())
    return msgspec.structs.replace(config, seed=0).fingerprint()


def _known(runs: Sequence[Curves], figure: str) -> bool:
    return any(run.points(figure, "decisions")[0].size for run in runs)


def _check_figure(runs: Sequence[Curves], figure: str) -> None:
    if _known(runs, figure):
        return
    names = sorted({name for run in runs for name in run.columns if name not in BASE_COLUMNS and _known(runs, name)})
    close = difflib.get_close_matches(figure, names, 1)
    hint = f"Did you mean {close[0]}? " if close else ""
    raise ConfigError(f"None of the runs has the figure {figure!r}. {hint}They have {', '.join(names) or 'none'}.")


def lines_of(runs: Sequence[Curves], figure: str, x: str, band: str) -> list[Line]:
    """One line for each configuration among the runs that have the figure, each with a label of its own.

    Runs of one configuration that share no part of the x axis are a line each: they have no mean.
    """
    names = _names(runs)
    groups: dict[str, list[Curves]] = {}
    for run in runs:
        if run.points(figure, AXES[x][0])[0].size:
            groups.setdefault(run.configuration, []).append(run)
    parts = [part for group in groups.values() for part in _overlapping(group, figure, AXES[x][0])]
    lines = [_line(part, [names[run.folder] for run in part], figure, AXES[x][0], band) for part in parts]
    times = Counter(line.label for line in lines)
    return [
        replace(line, label=", ".join(names[run.folder] for run in part)) if times[line.label] > 1 else line
        for line, part in zip(lines, parts)
    ]


def _names(runs: Sequence[Curves]) -> dict[Path, str]:
    """What distinguishes the folders: their paths below the folder that holds all of them."""
    try:
        above = os.path.commonpath([run.folder.parent for run in runs])
    except ValueError:  # drives of Windows
        return {run.folder: run.folder.as_posix() for run in runs}
    return {run.folder: run.folder.relative_to(above).as_posix() for run in runs}


def _overlapping(group: list[Curves], figure: str, x: str) -> list[list[Curves]]:
    """The group, or each of its runs alone where no part of the x axis is known of all."""
    points = [run.points(figure, x)[0] for run in group]
    together = max(across[0] for across in points) <= min(across[-1] for across in points)
    return [group] if together else [[run] for run in group]


def _line(group: Sequence[Curves], names: Sequence[str], figure: str, x: str, band: str) -> Line:
    points = [run.points(figure, x) for run in group]
    if len(group) == 1:
        across, up = points[0]
        return Line(names[0], across, up, up, up, 1)
    first, last = max(across[0] for across, _ in points), min(across[-1] for across, _ in points)
    grid = np.linspace(first, last, POINTS if last > first else 1)  # where all of them are known
    values = np.stack([np.interp(grid, across, up) for across, up in points])  # [runs, POINTS]
    mean = values.mean(axis=0)
    if band == "sem":
        error = values.std(axis=0, ddof=1) / np.sqrt(len(group))
        low, high = mean - error, mean + error
    else:
        low, high = values.min(axis=0), values.max(axis=0)
    same = next((n for n, letters in enumerate(zip(*names)) if len(set(letters)) > 1), min(map(len, names)))
    shared = names[0][:same].rstrip("-_. 0123456789").rstrip("/")
    return Line(shared or ", ".join(names), grid, mean, low, high, len(group))


def _draw(axes: Axes, figure: str, lines: Sequence[Line], x_label: str, band: str) -> None:
    for line in lines:
        label = f"{line.label}: mean of {line.runs} runs, band: {BANDS[band]}" if line.runs > 1 else line.label
        marks = {"marker": "o", "markersize": 3.0} if line.x.size < 40 else {}
        drawn = axes.plot(line.x, line.mean, label=label, linewidth=1.2, **marks)  # type: ignore[arg-type]
        if line.runs > 1:
            axes.fill_between(line.x, line.low, line.high, alpha=0.2, color=drawn[0].get_color(), linewidth=0)
    axes.set_title(figure, fontsize=10)
    axes.set_xlabel(x_label)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, frameon=False)
