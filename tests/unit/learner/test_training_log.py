"""Rows of a file on a disk that is full for a while: none is torn, none is lost unsaid."""

from __future__ import annotations

import csv
import errno
import math
import os

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from simul.learner import training_log as module
from simul.learner.reports import COLUMNS, SAY_EVERY_SEC
from simul.learner.training_log import MOST_WAITING, SideFile, TrainingLog


class Disk:
    """Takes `room` bytes more, then says that it is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = 10**9
        self._write = os.write
        monkeypatch.setattr(module.os, "write", self.write)

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


def test_the_csv_goes_on_after_a_restart_and_another_header_is_set_aside(tmp_path):
    row = dict.fromkeys(COLUMNS, 1.5)
    for decisions in (10, 20):
        training_log = TrainingLog(tmp_path, decisions, every_sec=0.0)
        training_log.write(row, decisions)
        training_log.close()
    rows = list(csv.reader((tmp_path / "learner.csv").read_text().splitlines()))
    assert rows[0] == list(COLUMNS)
    assert len(rows) == 3
    (tmp_path / "learner.csv").write_text("old,header\n1,2\n")
    training_log = TrainingLog(tmp_path, 30)
    training_log.write(row, 30)
    training_log.close()
    assert (tmp_path / "learner.1.csv").read_text() == "old,header\n1,2\n"
    assert (tmp_path / "learner.csv").read_text().splitlines()[0] == ",".join(COLUMNS)
    assert list((tmp_path / "tensorboard").iterdir())


def _shown(tmp_path, tag="learner/entropy"):
    """What TensorBoard shows of a run: (step, value) of each row."""
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    return [(event.step, event.value) for event in board.Scalars(tag)]


def test_files_that_cannot_be_made_are_tried_again_and_no_row_is_lost(tmp_path):
    (tmp_path / "learner.csv").mkdir()
    (tmp_path / "tensorboard").write_text("in the way")
    training_log = TrainingLog(tmp_path, 0, every_sec=0.0)
    said = [training_log.write(dict.fromkeys(COLUMNS, float(step)), step) for step in (10, 20)]
    assert [len(sentences) for sentences in said] == [2, 0], "each once a minute"
    assert said[0][0].startswith("learner.csv could not be written: Is a directory. 1 rows wait for it, 0 were lost.")
    assert said[0][1].startswith("TensorBoard's file could not be written: ")
    (tmp_path / "learner.csv").rmdir()
    (tmp_path / "tensorboard").unlink()
    back = training_log.write(dict.fromkeys(COLUMNS, 30.0), 30)
    assert back == [
        "learner.csv is written again, with the 3 rows that waited; 0 were lost.",
        "TensorBoard's file is written again, with the 3 rows that waited; 0 were lost.",
    ]
    assert training_log.write(dict.fromkeys(COLUMNS, 40.0), 40) == []
    training_log.close()
    rows = list(csv.DictReader((tmp_path / "learner.csv").read_text().splitlines()))
    assert [row["entropy"] for row in rows] == ["10", "20", "30", "40"]
    assert _shown(tmp_path) == [(10, 10.0), (20, 20.0), (30, 30.0), (40, 40.0)]


def test_tensorboard_forgets_what_a_former_life_learned_in_vain(tmp_path):
    for begin, steps in ((0, (10, 20, 30)), (20, (25, 35))):
        training_log = TrainingLog(tmp_path, begin, every_sec=0.0)
        for step in steps:
            training_log.write(dict.fromkeys(COLUMNS, 1.0) | {"kl": math.nan}, step)
        training_log.close()
    assert [step for step, _ in _shown(tmp_path)] == [10, 25, 35]
