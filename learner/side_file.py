"""Side outputs: files that are written beside the training, and may fail and come back without ending it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

SAY_EVERY_SEC = 60.0
MOST_WAITING = 3600  # rows kept for a file that cannot be written: an hour at one a second


class SideFile:
    """Rows at the end of a file, each whole or not at all. `now` from time.monotonic().

    While the file cannot be written its rows wait, the oldest make room and are counted, and a sentence says so once a
    minute. Once it can be, all that wait are written.

    Attributes:
        lost: rows that made room, since the start.
    """

    def __init__(self, name: str, begin: Callable[[], tuple[Path, bytes]]) -> None:
        """`name`: in sentences. `begin`: which file, and what it begins with where it is empty. May raise OSError."""
        self.lost = 0
        self._name = name
        self._begin = begin
        self._waiting: deque[bytes] = deque()
        self._file = -1
        self._broken = False
        self._say_at = 0.0

    def append(self, row: bytes, now: float) -> str:
        """Write a row, and those that wait. A sentence where that has failed, or succeeds again; else empty."""
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
        """Close the file. Every row was written when it came, or is waiting."""
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
            os.ftruncate(self._file, size)  # a row of which only the beginning found room
            raise

    def _failed(self, error: OSError, now: float) -> str:
        if self._broken and now < self._say_at:
            return ""
        self._broken, self._say_at = True, now + SAY_EVERY_SEC
        waiting = f"{len(self._waiting)} rows wait for it, {self.lost} were lost"
        return f"{self._name} could not be written: {error.strerror or error}. {waiting}. Training goes on."
