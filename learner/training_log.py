"""learner.csv and TensorBoard's event file, written beside the training: they may fail and recover without ending it.

Not `torch.utils.tensorboard.SummaryWriter`: its thread ends for good at the first row that finds no room on the disk,
and its constructor then raises.
"""

from __future__ import annotations

import io
import math
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from simul.learner.reports import COLUMNS, SAY_EVERY_SEC

MOST_WAITING = 3600  # rows kept for a file that cannot be written: an hour at one a second


class SideFile:
    """Rows at the end of a file, each whole or not at all. `now` from time.monotonic().

    While the file cannot be written, its rows wait; the oldest are dropped and counted beyond MOST_WAITING, and a
    sentence says so once a minute. Waiting rows are written as soon as the file can be.

    Attributes:
        lost: rows dropped since the start.
    """

    def __init__(self, name: str, begin: Callable[[], tuple[Path, bytes]]) -> None:
        """`name`: in sentences. `begin`: the file and its header, written where it is empty; may raise OSError."""
        self.lost = 0
        self._name = name
        self._begin = begin
        self._waiting: deque[bytes] = deque()
        self._file = -1
        self._broken = False
        self._say_at = 0.0

    def append(self, row: bytes, now: float) -> str:
        """Write the waiting rows and this one. A sentence on a failure and on the first success after it."""
        self._waiting.append(row)
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self.lost += 1
        try:
            self._write()
        except OSError as error:
            self.close()
            return self._failed(error, now)
        rows = len(self._waiting)
        self._waiting.clear()
        if not self._broken:
            return ""
        self._broken = False
        return f"{self._name} is written again, with the {rows} rows that waited; {self.lost} were lost."

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self) -> None:
        data = b"".join(self._waiting)
        if self._file < 0:
            path, header = self._begin()
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            if os.fstat(self._file).st_size == 0:
                data = header + data
        size = os.fstat(self._file).st_size
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError:
            os.ftruncate(self._file, size)  # remove a row that was written in part
            raise

    def _failed(self, error: OSError, now: float) -> str:
        if self._broken and now < self._say_at:
            return ""
        self._broken, self._say_at = True, now + SAY_EVERY_SEC
        waiting = f"{len(self._waiting)} rows wait for it, {self.lost} were lost"
        return f"{self._name} could not be written: {error.strerror or error}. {waiting}. Training goes on."


def new_event_file(folder: Path, purge_step: int) -> tuple[Path, bytes]:
    """A new file's path and first bytes. `purge_step`: TensorBoard hides rows of older files from there on (0: none).

    Raises OSError where the folder cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)  # TensorBoard reads files in the order of their names
    name = f"events.out.tfevents.{seconds:010d}.{socket.gethostname()}.{os.getpid()}.{nanoseconds:09d}"
    begin = _record(Event(wall_time=time.time(), file_version="brain.Event:2"))
    if purge_step:
        start = SessionLog(status=SessionLog.START)
        begin += _record(Event(wall_time=time.time(), step=purge_step, session_log=start))
    return folder / name, begin


def scalars(row: Mapping[str, float], step: int) -> bytes:
    """One record with the finite numbers of a row."""
    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in row.items() if math.isfinite(value)]
    return _record(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))


def _record(event: Event) -> bytes:
    buffer = io.BytesIO()
    RecordWriter(buffer).write(event.SerializeToString())
    return buffer.getvalue()


class TrainingLog:
    """TensorBoard under `tensorboard/` and learner.csv, both appended to on resume, from the first row on."""

    def __init__(self, root: Path, decisions: int, every_sec: float = 1.0) -> None:
        self._root = root
        self._path = root / "learner.csv"
        self._begin = decisions
        self._every = every_sec
        self._next = 0.0
        self._csv = SideFile("learner.csv", self._begin_csv)
        self._board = SideFile("TensorBoard's file", self._begin_board)
        self._board_file: tuple[Path, bytes] | None = None
        self._last: tuple[dict[str, float], int] | None = None

    @property
    def rows_lost(self) -> int:
        """Rows dropped because the disk was full for long."""
        return self._csv.lost + self._board.lost

    def write(self, row: dict[str, float], decisions: int) -> list[str]:
        """One row, at most one a second, and the last one at the end; `row` has exactly the keys COLUMNS.

        Returns sentences about a file that cannot be written, or can be again. Never raises OSError.
        """
        now = time.monotonic()
        if now < self._next:
            self._last = row, decisions
            return []
        self._last = None
        self._next = now + self._every
        values = [f"{row[name]:.6g}" if isinstance(row[name], float) else row[name] for name in COLUMNS]
        tagged = {f"learner/{name}": row[name] for name in COLUMNS}
        sentences = (self._csv.append(_csv_line(values), now), self._board.append(scalars(tagged, decisions), now))
        return [sentence for sentence in sentences if sentence]

    def close(self) -> None:
        """Write the last row, and close both files."""
        if self._last is not None:
            self._next = 0.0
            self.write(*self._last)
        self._csv.close()
        self._board.close()

    def _begin_csv(self) -> tuple[Path, bytes]:
        self._set_aside_other_header()
        return self._path, _csv_line(COLUMNS)

    def _begin_board(self) -> tuple[Path, bytes]:
        self._board_file = self._board_file or new_event_file(self._root / "tensorboard", self._begin)
        self._board_file[0].parent.mkdir(exist_ok=True)
        return self._board_file

    def _set_aside_other_header(self) -> None:
        """Rename a learner.csv that another version of Simul wrote with other columns."""
        if not self._path.exists():
            return
        with self._path.open(errors="replace") as file:
            header = file.readline().strip()
        if header and header != ",".join(COLUMNS):
            number = 1
            while (aside := self._path.with_suffix(f".{number}.csv")).exists():
                number += 1
            self._path.rename(aside)


def _csv_line(values: Iterable[object]) -> bytes:
    return (",".join(str(value) for value in values) + "\r\n").encode()
