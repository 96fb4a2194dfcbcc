"""A curves.csv that grows, as few rows: read as it is appended to, and thinned, so that a run of weeks fits a chart."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from pathlib import Path

from simul.common.runtime.private_files import open_regular
from simul.launch.monitoring.curves.curves_csv import BASE_COLUMNS
from simul.launch.monitoring.page.runs.charts import Chart, charts_of

MOST_ROWS = 600  # kept; at twice as many, each two become their mean
PIECE_BYTES = 2 * 2**20  # read at once: a long file is drawn piece by piece
Row = list[float | None]  # decisions, training_sec, then a value for each of `columns`


class CurveTail:
    """The drawn columns of one curves.csv.

    Attributes:
        generation: grows where `rows` begins anew: a reader that has seen part of it starts again.
        rows: each the mean of `stride` rows of the file, at the last one's place.
        fault: a sentence where the file cannot be drawn; "" where there is none, or no file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin(b"", 0)
        self.generation = 0

    def poll(self) -> None:
        """Read what was appended, at most PIECE_BYTES."""
        try:
            with os.fdopen(open_regular(self._path, links=False), "rb") as file:
                found = os.fstat(file.fileno())
                header = file.readline(PIECE_BYTES)
                if header != self._header or found.st_ino != self._inode or found.st_size < self._offset:
                    self._begin(header, found.st_ino)
                if (not header.endswith(b"\n") and len(header) < PIECE_BYTES) or not self._read_header():
                    return
                file.seek(self._offset)
                piece = file.read(PIECE_BYTES)
        except FileNotFoundError:
            return
        except OSError as error:
            self.fault = f"{self._path.name} cannot be read: {error.strerror}."
            return
        whole = piece[: piece.rfind(b"\n") + 1]
        self._offset += len(whole)
        if not whole and len(piece) == PIECE_BYTES:
            self.fault = f"{self._path.name} has a line of more than {PIECE_BYTES:,} bytes: what follows is not drawn."
        for line in whole.splitlines():
            self._add(line.decode("ascii", "replace").split(","))

    def tail(self) -> Row | None:
        """The mean of the rows that are not enough for one of `rows` yet."""
        return _mean(self._pending) if self._pending else None

    def _begin(self, header: bytes, inode: int) -> None:
        self._header, self._inode, self._offset = header, inode, len(header)
        self.fault = ""
        self.charts: list[Chart] = []
        self.rows: list[Row] = []
        self.stride = 1
        self.generation = getattr(self, "generation", 0) + 1
        self._pending: list[Row] = []
        self._places: list[tuple[int, float]] = []
        self._last = (0.0, 0.0)

    def _read_header(self) -> bool:
        if self._places:
            return True
        try:
            columns = next(csv.reader([self._header.decode(errors="replace")]), [])
        except csv.Error:
            columns = []
        if tuple(columns[: len(BASE_COLUMNS)]) != BASE_COLUMNS:
            self.fault = f"{self._path.name} is no table of curves."
            return False
        self.charts = charts_of(columns)
        places = {name: place for place, name in reversed(list(enumerate(columns)))}
        self._places = [(0, 1.0), (1, 1.0)]
        self._places += [(places[name], chart.scale) for chart in self.charts for name in chart.columns()]
        return True

    def _add(self, cells: Sequence[str]) -> None:
        row = [_number(cells[place], scale) if place < len(cells) else None for place, scale in self._places]
        decisions, training_sec = row[:2]
        if decisions is None or training_sec is None or decisions < self._last[0] or training_sec < self._last[1]:
            return
        self._last = (decisions, training_sec)
        self._pending.append(row)
        if len(self._pending) < self.stride:
            return
        self.rows.append(_mean(self._pending))
        self._pending = []
        if len(self.rows) >= 2 * MOST_ROWS:
            self.rows = [_mean(pair) for pair in zip(self.rows[::2], self.rows[1::2])]
            self.stride *= 2
            self.generation += 1


def _number(cell: str, scale: float) -> float | None:
    try:
        value = float(cell) * scale
    except ValueError:
        return None
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _mean(rows: Sequence[Row]) -> Row:
    """Of each column over the rows that have it; decisions and time are those of the last row."""
    if len(rows) == 1:
        return rows[0]
    means: Row = rows[-1][:2]
    for values in list(zip(*rows))[2:]:
        known = [value for value in values if value is not None]
        means.append(float(f"{math.fsum(known) / len(known):.6g}") if known else None)
    return means
