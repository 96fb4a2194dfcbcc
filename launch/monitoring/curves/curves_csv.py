"""curves.csv of a run, written and read."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from simul.common.runtime.private_files import open_regular, open_to_change, replace_file
from simul.launch.monitoring.curves.figures import CURVES, CurvePosition, CurveReport
from simul.launch.monitoring.curves.side_file import SideFile

CSV_NAME = "curves.csv"
BASE_COLUMNS = ("decisions", "training_sec", "time")


class CsvWriter:
    """curves.csv: one row a report, one column a name. A name that is new gets a column at the end.

    Earlier rows then are shorter than the header: their last cells are empty. A resumed run keeps the columns.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / CSV_NAME
        self._columns: list[str] = []
        self._file = SideFile(CSV_NAME, self._begin)

    @property
    def lost(self) -> int:
        """Rows dropped."""
        return self._file.lost

    def write(self, report: CurveReport, now: float) -> list[str]:
        """Append a row."""
        if not self._columns:
            self._columns = read_header(self._path) or [*BASE_COLUMNS, *(name for name in CURVES if "<" not in name)]
        if new := [name for name in report.figures if name not in self._columns]:
            self._columns += new
            self._file.close()  # `_begin` extends the header
        cells: Mapping[str, float] = {
            **report.figures, "decisions": report.decisions, "training_sec": report.training_sec, "time": report.time
        }  # fmt: skip
        row = _csv_line(_cell(cells[name]) if name in cells else "" for name in self._columns)
        return list(filter(None, [self._file.append(row, now)]))

    def close(self, hurry: Callable[[], bool] = lambda: False) -> list[str]:
        """Close the file."""
        self._file.close()
        return []

    def _begin(self) -> tuple[Path, bytes]:
        header = _csv_line(self._columns)
        if self._path.exists() and self._path.stat().st_size:
            _keep_whole_rows(self._path)
            old = read_header(self._path)
            if not old or old != self._columns[: len(old)]:
                _set_aside(self._path)
            elif old != self._columns:
                _replace_header(self._path, header)
        return self._path, header


def read_header(path: Path) -> list[str]:
    """The columns of a curves.csv; [] where there is none, or the file is something else."""
    try:
        with os.fdopen(open_regular(path), encoding="utf-8", errors="replace", newline="") as file:
            columns = next(csv.reader([file.readline()]), [])
    except (OSError, csv.Error):  # Error: a field of more than 131,072 characters
        return []
    return columns if tuple(columns[: len(BASE_COLUMNS)]) == BASE_COLUMNS else []


def last_position(root: Path) -> CurvePosition:
    """Where the curves of a run end; the beginning where there are none."""
    path, found = root / CSV_NAME, CurvePosition()
    if not read_header(path):
        return found
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            file.seek(max(0, path.stat().st_size - 65_536))
            tail = file.read().decode(errors="replace").splitlines()[1:]  # the first one may be cut
    except OSError:
        return found
    for line in tail:
        try:
            decisions, training_sec = (float(cell) for cell in line.split(",")[:2])
        except ValueError:
            continue
        found = CurvePosition(max(found.decisions, decisions), max(found.training_sec, training_sec))
    return found


def past_evaluations(root: Path) -> list[dict[str, float]]:
    """The evaluations in the curves of a run, oldest first: figures by their name behind `evaluation/`.

    Each has a `score`; what is not known is nan. [] where there are no curves, or they cannot be read.
    """
    path, prefix = root / CSV_NAME, "evaluation/"
    columns = read_header(path)
    places = {name.removeprefix(prefix): at for at, name in enumerate(columns) if name.startswith(prefix)}
    if "score" not in places:
        return []
    try:
        with os.fdopen(open_regular(path), encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.reader(line for line in file if line.endswith("\n"))  # a killed run may have left half a line
            known = ({name: read_cell(row[at]) for name, at in places.items() if at < len(row)} for row in rows)
            return [figures for figures in known if math.isfinite(figures.get("score", math.nan))]
    except (OSError, csv.Error):
        return []


def read_cell(cell: str) -> float:
    """A number of curves.csv; nan where the cell is empty, or no number."""
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _cell(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}" if abs(
        value
    ) < 1e9 else f"{value:.3f}"  # fmt: skip


def _csv_line(values: Iterable[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue().encode()


def _keep_whole_rows(path: Path) -> None:
    """Remove a last row that a killed supervisor left in part."""
    with os.fdopen(open_to_change(path), "rb+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 65_536))
        tail = file.read()
        if not tail.endswith(b"\n"):
            file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)


def _set_aside(path: Path) -> None:
    """Rename a file that has other columns, or none."""
    number = 1
    while (aside := path.with_suffix(f".{number}.csv")).exists():
        number += 1
    path.rename(aside)


def _replace_header(path: Path, header: bytes) -> None:
    """Write the file anew with a longer header. Raises OSError and then leaves the old one."""
    with os.fdopen(open_regular(path), "rb") as file:
        rows = file.read().partition(b"\n")[2]
    replace_file(path, header + rows)
