"""`simul plot`: curves of one or several runs as a picture; runs that differ in their seed alone are one line."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib
import msgspec
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter
from numpy.typing import NDArray

from simul.common.errors import ConfigError, did_you_mean
from simul.common.role.run_directory import RunDir
from simul.common.runtime.private_files import open_regular
from simul.common.runtime.terminal_text import printable
from simul.launch.monitoring.curves.curves_csv import BASE_COLUMNS, CSV_NAME, read_cell, read_header
from simul.launch.monitoring.curves.figures import CURVES

matplotlib.use("Agg")
matplotlib.rcParams["text.parse_math"] = False  # a run or a figure may be called $x$

# What is drawn where no figure is named: of these, what the runs have.
DEFAULTS = ("win_rate", "evaluation/win_rate", "evaluation/score", "episodes/return_mean", "episodes/length_mean",
            "learner/entropy", "run/decisions_per_sec")  # fmt: skip
# Names that stand for a figure of each opponent, or the like: all of them are one panel.
FAMILIES = frozenset(curve.rpartition("/<")[0] for curve in CURVES if curve.count("<") == 1 and curve.endswith(">"))
TITLES = {
    "win_rate": "win rate against each opponent, recent games",
    "evaluation/win_rate": "evaluation: win rate against each opponent",
}
SELF_PLAY = "self_play"  # half of its games are won, whatever was learned
STYLES = ("-", "--", ":", "-.")
AXES = {"decisions": ("decisions", "decisions"), "time": ("training_sec", "training time (s)")}
INTERVAL = "95% interval"  # of the games of one run
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

    def interval(self, figure: str) -> tuple[Values, Values]:
        """(low, high) of the same rows as `points`: the 95% interval of a win rate, else the figure itself."""
        known = self.columns[figure][np.isfinite(self.columns[figure])]
        family, _, opponent = figure.rpartition("/")
        found = []
        for bound in ("low", "high"):
            values = self.columns.get(f"{family}_{bound}/{opponent}")
            if values is None:
                return known, known
            rows = values[np.isfinite(self.columns[figure])]
            found.append(np.where(np.isfinite(rows), rows, known))
        return found[0], found[1]


@dataclass(frozen=True)
class Line:
    """One line of a picture: a run with the interval of its figure, or the mean of `runs` runs with a band.

    `colour`, `style`: numbers, the same for the lines of one opponent, and of one run; -1: of its own.
    """

    label: str
    x: Values
    mean: Values
    low: Values
    high: Values
    runs: int
    colour: int = -1
    style: int = 0

    @property
    def banded(self) -> bool:
        """Whether there is a band to draw."""
        return bool((self.low < self.high).any())


def plot(
    folders: Sequence[Path], figures: Sequence[str], out: Path, *,
    x: str = "decisions", band: str = "minmax", say: Callable[[str], object] = lambda sentence: None,
) -> list[str]:  # fmt: skip
    """Draw the named figures, or the usual ones, into `out`. Returns the names that were drawn.

    `win_rate` is one panel of the win rates against all opponents, likewise the other FAMILIES.

    Args:
        x: `decisions` or `time`.
        band: what the band around a mean shows: `minmax` or `sem`, the standard error.
        say: gets a sentence for each figure that some of the runs do not have.

    Raises:
        ConfigError: a run has no curves, no run has a figure of that name, or `out` cannot be written.
    """
    if out.suffix.lower() not in FORMATS:
        raise ConfigError(f"--out {out}: expected a name that ends in {' or '.join(FORMATS)}.")
    runs = [read_curves(folder) for folder in dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders)]
    names = list(dict.fromkeys(figures)) or _usual(runs)
    for name in names:
        if name not in FAMILIES or not _members(runs, name):
            _check_figure(runs, name)
        if left_out := [str(run.folder) for run in runs if not _known([run], name)]:
            say(f"{name}: left out {', '.join(left_out)}, without that figure.")
    if not names:
        raise ConfigError(f"The runs have none of the figures that are drawn by default ({', '.join(DEFAULTS)}).")
    picture = Figure(layout="constrained")
    for name, axes in zip(names, _places(picture, len(names), wide_first=names[0] in TITLES)):
        _draw(axes, name, panel_lines(runs, name, x, band), AXES[x][1], band)
    try:
        picture.savefig(out, dpi=150)
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written: {error.strerror or error}.") from None
    return names


def read_curves(folder: Path) -> Curves:
    """The curves of a run directory. Raises ConfigError where it has none."""
    path = folder / CSV_NAME
    columns = read_header(path)
    if not columns and path.exists() and not (path.is_file() and not path.stat().st_size):
        raise ConfigError(
            f"{path} is no table of curves: expected a file whose first line begins with {', '.join(BASE_COLUMNS)}. "
            "Name another run, or remove the file."
        )
    if not columns:
        older = " An older version of Simul made it, which wrote learner.csv." * (folder / "learner.csv").exists()
        raise ConfigError(
            f"{folder} has no curves: expected {path}, which a run writes while it trains, unless `metrics` in its "
            f"configuration leaves csv out.{older}"
        )
    try:
        with os.fdopen(open_regular(path), encoding="utf-8", errors="replace", newline="") as file:
            whole = [line for line in file if line.endswith("\n")]  # a run may be writing the last one
            rows = list(csv.reader(whole))[1:]
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    except csv.Error as error:
        raise ConfigError(f"{path} is no table of curves: {error}. Name another run, or remove the file.") from None
    cells = np.full((len(rows), len(columns)), np.nan)
    for number, row in enumerate(rows):
        for place, cell in enumerate(row[: len(columns)]):
            cells[number, place] = read_cell(cell)
    return Curves(folder.resolve(), _configuration(folder), dict(zip(columns, cells.T)))


def _configuration(folder: Path) -> str:
    """The same for two runs whose configurations differ in their seed alone; the folder where it cannot be read."""
    try:
        config = RunDir(folder).read_config()
    except ConfigError:
        return str(folder.resolve())
    return msgspec.structs.replace(config, seed=0).fingerprint()


def _usual(runs: Sequence[Curves]) -> list[str]:
    """DEFAULTS that the runs have. In a game of several seats self-play holds the mean return at zero: it comes last.

    The score of an evaluation against opponents is the mean of win rates that are drawn.
    """
    names = [name for name in DEFAULTS if _known(runs, name)]
    if "evaluation/win_rate" in names:
        names.remove("evaluation/score")
    if any(name.startswith("win_rate/") for run in runs for name in run.columns):
        names.sort(key=lambda name: name == "episodes/return_mean")
    return names


def _members(runs: Sequence[Curves], family: str) -> list[str]:
    """The figures `family/<name>` that the runs have, in the order of their columns; without self-play.

    Past selves are one line together: there may be a hundred of them, each served for a while.
    """
    names = dict.fromkeys(name for run in runs for name in run.columns if name.rpartition("/")[0] == family)
    left_out = re.compile(rf"win_rate/({SELF_PLAY}|past_\d+)$")
    return [name for name in names if not left_out.search(name) and _has(runs, name)]


def _known(runs: Sequence[Curves], figure: str) -> bool:
    """Whether one of the runs has the figure, or one of its family."""
    return _has(runs, figure) or (figure in FAMILIES and bool(_members(runs, figure)))


def _has(runs: Sequence[Curves], figure: str) -> bool:
    return any(run.points(figure, "decisions")[0].size for run in runs)


def _places(picture: Figure, panels: int, *, wide_first: bool) -> list[Axes]:
    """Axes in two columns, one for a single panel. `wide_first`: the first one has a row of its own."""
    wide = wide_first and panels > 2
    columns = min(panels, 2)
    cells = panels + wide
    rows = -(-cells // columns)
    picture.set_size_inches(WIDTH * columns, HEIGHT * rows)
    grid = picture.add_gridspec(rows, columns)
    first = [picture.add_subplot(grid[0, :])] if wide else []
    rest = [picture.add_subplot(grid[cell // columns, cell % columns]) for cell in range(2 * wide, cells)]
    return first + rest


def panel_lines(runs: Sequence[Curves], name: str, x: str, band: str) -> list[Line]:
    """The lines of a figure, or of all figures of its family: a colour for each, a style for each run."""
    members = _members(runs, name) if name in FAMILIES else []
    found = [lines_of(runs, member, x, band) for member in members]
    if not members:
        return lines_of(runs, name, x, band)
    labels = list(dict.fromkeys(line.label for lines in found for line in lines))
    return [
        replace(
            line, label=part if len(labels) == 1 else f"{part}, {line.label}", colour=colour,
            style=labels.index(line.label) % len(STYLES),
        )
        for colour, (member, lines) in enumerate(zip(members, found))
        for part in [member.rpartition("/")[2]]
        for line in lines
    ]  # fmt: skip


def _check_figure(runs: Sequence[Curves], figure: str) -> None:
    if _known(runs, figure):
        return
    names = sorted({name for run in runs for name in run.columns if name not in BASE_COLUMNS and _known(runs, name)})
    hint = did_you_mean(figure, names) or "."
    raise ConfigError(f"None of the runs has the figure {figure!r}{hint} They have {', '.join(names) or 'none'}.")


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
        return Line(names[0], *points[0], *group[0].interval(figure), 1)
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
    several = any(line.runs > 1 for line in lines)
    for number, line in enumerate(lines):
        label = f"{line.label}: mean of {line.runs} runs, band: {BANDS[band]}" if line.runs > 1 else line.label
        label += f", band: {INTERVAL}" if line.runs == 1 and several and line.banded else ""
        label = printable(label)
        marks = {"marker": "o", "markersize": 3.0} if line.x.size < 40 else {}
        colour = f"C{number if line.colour < 0 else line.colour}"
        axes.plot(line.x, line.mean, STYLES[line.style], label=label, linewidth=1.2, color=colour, **marks)  # type: ignore[arg-type]
        if line.banded and line.x.size > 1:
            axes.fill_between(line.x, line.low, line.high, alpha=0.2, color=colour, linewidth=0)
        elif line.banded:  # a band of one point has no width
            axes.vlines(line.x, line.low, line.high, alpha=0.4, color=colour, linewidth=3)
    bands = f" (bands: {INTERVAL}s)" if not several and any(line.banded for line in lines) else ""
    axes.set_title(f"{printable(TITLES.get(figure, figure))}{bands}", fontsize=10)
    axes.set_xlabel(x_label)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if "win_rate" in figure:
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, edgecolor="none", framealpha=0.7)
