"""A file of rows that the supervisor's loop appends to: a full disk costs neither the run nor half a row."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

from simul.common.runtime.private_files import open_to_append

MOST_WAITING = 3600  # rows kept for a file that cannot be written: hours
SAY_EVERY_SEC = 60.0  # a failure that lasts is repeated so often


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
        """Close the file; the next row opens it again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self) -> None:
        data = b"".join(self._waiting)
        if self._file < 0:
            path, header = self._begin()
            self._file = open_to_append(path)
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
