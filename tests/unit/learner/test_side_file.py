"""Rows of a file on a disk that is full for a while: none is torn, none is lost unsaid."""

from __future__ import annotations

import errno
import os

import pytest

from simul.learner import side_file
from simul.learner.side_file import MOST_WAITING, SAY_EVERY_SEC, SideFile


class Disk:
    """Takes `room` bytes more, then says that it is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = 10**9
        self._write = os.write
        monkeypatch.setattr(side_file.os, "write", self.write)

    def write(self, file: int, data: bytes) -> int:
        written = min(len(data), self.room)
        if not written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= written
        return self._write(file, data[:written])


@pytest.fixture
def disk(monkeypatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def file(tmp_path, disk):
    made = SideFile("rows", lambda: (tmp_path / "rows", b"header\n"))
    yield made
    made.close()


def test_a_full_disk_is_said_once_a_minute_and_every_row_comes_when_there_is_room(tmp_path, file, disk):
    assert file.append(b"row 0\n", 0.0) == ""
    disk.room = 3
    said = [file.append(b"row %d\n" % number, float(number)) for number in range(1, 64)]
    assert [number for number, sentence in enumerate(said, 1) if sentence] == [1, 61]
    assert (
        said[0]
        == "rows could not be written: No space left on device. 1 rows wait for it, 0 were lost. Training goes on."
    )
    assert (tmp_path / "rows").read_bytes() == b"header\nrow 0\n", "half a row is no row"
    disk.room = 10**9
    assert file.append(b"row 64\n", 64.0) == "rows is written again, with the 64 rows that waited; 0 were lost."
    assert (tmp_path / "rows").read_text().splitlines() == ["header", *(f"row {n}" for n in range(65))]
    disk.room = 0
    assert file.append(b"more\n", 65.0), "another time it is said anew"


def test_a_disk_that_is_full_from_the_beginning_gets_the_header_once(tmp_path, file, disk):
    disk.room = 4
    assert file.append(b"a\n", 0.0)
    assert file.append(b"b\n", SAY_EVERY_SEC / 2) == ""
    disk.room = 10**9
    file.append(b"c\n", SAY_EVERY_SEC)
    assert (tmp_path / "rows").read_text() == "header\na\nb\nc\n"


def test_what_waits_for_too_long_makes_room_and_is_counted(tmp_path, file, disk):
    disk.room = 0
    for number in range(MOST_WAITING + 5):
        file.append(b"%d\n" % number, 0.0)
    assert file.lost == 5
    disk.room = 10**9
    assert file.append(b"last\n", 1.0).endswith("6 were lost.")
    rows = (tmp_path / "rows").read_text().splitlines()
    assert (rows[1], rows[-1], len(rows)) == ("6", "last", MOST_WAITING + 1)
