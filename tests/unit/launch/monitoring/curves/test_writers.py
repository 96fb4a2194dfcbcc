"""Rows of a file on a disk that is full for a while; curves.csv and TensorBoard's file over starts; callbacks."""

from __future__ import annotations

import csv
import errno
import os
import re
import threading
import time

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from simul.launch.monitoring.curves import background_writer as module
from simul.launch.monitoring.curves.background_writer import MOST_QUEUED, callback_writer
from simul.launch.monitoring.curves.callback_figures import CallbackFigures
from simul.launch.monitoring.curves.curve_log import CurveLog
from simul.launch.monitoring.curves.curves_csv import CsvWriter, last_position
from simul.launch.monitoring.curves.figures import CurvePosition, CurveReport
from simul.launch.monitoring.curves.side_file import MOST_WAITING, SAY_EVERY_SEC, SideFile
from simul.launch.monitoring.curves.tensorboard_file import TensorBoardWriter


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A slow machine finishes in time."""
    monkeypatch.setattr(module, "FINISH_SEC", 100.0)


class Disk:
    """Takes `room` bytes more, then says that it is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = 10**9
        self._write = os.write
        monkeypatch.setattr(os, "write", self.write)

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


def report(decisions: int, **figures: float) -> CurveReport:
    named = {name.replace("__", "/"): value for name, value in figures.items()}
    return CurveReport(decisions, decisions / 10, 1.7e9 + decisions, named)


def _write(tmp_path, *reports: CurveReport) -> None:
    """As one start of a run does."""
    writer = CsvWriter(tmp_path)
    assert [writer.write(each, 0.0) for each in reports] == [[]] * len(reports)
    writer.close()


def _rows(tmp_path) -> list[dict[str, str]]:
    return list(csv.DictReader((tmp_path / "curves.csv").read_text().splitlines()))


def test_the_csv_goes_on_after_a_restart_with_its_columns_and_gets_new_ones_at_the_end(tmp_path):
    for decisions in (10, 20):
        _write(tmp_path, report(decisions, learner__entropy=1.5))
    width = len(_rows(tmp_path)[0])
    new = {"win_rate__random": 0.75, "win_rate__past": 0.25}
    _write(tmp_path, report(30, learner__entropy=1.25, win_rate__random=0.5), report(40, **new))
    rows = _rows(tmp_path)
    assert [row["decisions"] for row in rows] == ["10", "20", "30", "40"]
    assert [row["learner/entropy"] for row in rows] == ["1.5", "1.5", "1.25", ""]
    assert [row["win_rate/random"] for row in rows] == [None, None, "0.5", "0.75"]
    assert len(rows[-1]) == width + 2
    assert rows[0]["decisions"] == "10"
    assert last_position(tmp_path) == CurvePosition(40.0, 4.0)


def test_a_file_with_another_header_is_set_aside_and_a_learner_csv_is_left_alone(tmp_path):
    (tmp_path / "curves.csv").write_text("old,header\n1,2\n")
    (tmp_path / "learner.csv").write_text("policy_version,kl\n1,2\n")
    assert last_position(tmp_path) == CurvePosition()
    _write(tmp_path, report(30))
    assert (tmp_path / "curves.1.csv").read_text() == "old,header\n1,2\n"
    assert (tmp_path / "learner.csv").read_text() == "policy_version,kl\n1,2\n"
    assert [row["decisions"] for row in _rows(tmp_path)] == ["30"]


def test_a_row_that_a_killed_supervisor_left_in_part_is_removed(tmp_path):
    _write(tmp_path, report(10))
    with (tmp_path / "curves.csv").open("a") as file:
        file.write("20,2")
    _write(tmp_path, report(30))
    assert [row["decisions"] for row in _rows(tmp_path)] == ["10", "30"]


def _shown(tmp_path, tag="learner/entropy"):
    """What TensorBoard shows of a run: (step, value) of each row."""
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    return [(event.step, event.value) for event in board.Scalars(tag)]


def test_files_that_cannot_be_made_are_tried_again_and_no_row_is_lost(tmp_path):
    (tmp_path / "curves.csv").mkdir()
    (tmp_path / "tensorboard").write_text("in the way")
    log = CurveLog([CsvWriter(tmp_path), TensorBoardWriter(tmp_path, 0)])
    said = [log.write(report(step, learner__entropy=float(step))) for step in (10, 20)]
    assert [len(sentences) for sentences in said] == [2, 0], "each once a minute"
    assert said[0][0].startswith("curves.csv could not be written: ")
    assert said[0][0].endswith("1 rows wait for it, 0 were lost. Training goes on.")
    assert said[0][1].startswith("TensorBoard's file could not be written: ")
    (tmp_path / "curves.csv").rmdir()
    (tmp_path / "tensorboard").unlink()
    assert log.write(report(30, learner__entropy=30.0)) == [
        "curves.csv is written again, with the 3 rows that waited; 0 were lost.",
        "TensorBoard's file is written again, with the 3 rows that waited; 0 were lost.",
    ]
    assert log.write(report(40, learner__entropy=40.0)) == []
    assert (log.close(), log.lost) == ([], 0)
    assert [row["learner/entropy"] for row in _rows(tmp_path)] == ["10", "20", "30", "40"]
    assert _shown(tmp_path) == [(10, 10.0), (20, 20.0), (30, 30.0), (40, 40.0)]


def test_tensorboard_hides_rows_beyond_the_place_where_a_start_goes_on(tmp_path):
    for begin, steps in ((0, (10, 20, 30)), (20, (25, 35))):
        writer = TensorBoardWriter(tmp_path, begin)
        for step in steps:
            writer.write(report(step, learner__entropy=1.0), 0.0)
        writer.close()
    assert [step for step, _ in _shown(tmp_path)] == [10, 20, 25, 35]


def test_a_callback_gets_every_report_as_plain_values_and_is_waited_for(tmp_path):
    got = []
    writer = callback_writer("mine:callback", got.append, CallbackFigures())
    for step in (10, 20):
        assert writer.write(report(step, learner__kl=0.5), 0.0) == []
    assert writer.close(lambda: False) == []
    assert got[1] == {"decisions": 20, "training_sec": 2.0, "time": 1.7e9 + 20, "figures": {"learner/kl": 0.5}}
    assert [each["decisions"] for each in got] == [10, 20]


@pytest.mark.parametrize("error", [RuntimeError("no room in the database"), SystemExit("no licence")])
def test_a_callback_that_raises_or_exits_is_said_once_and_gets_no_more(error):
    got = []

    def callback(each):
        got.append(each["decisions"])
        if len(got) == 2:
            raise error

    writer = callback_writer("mine:callback", callback, CallbackFigures())
    for step in range(5):
        writer.write(report(step), 0.0)
    writer._thread.join()
    said = [*writer.write(report(5), 0.0), *writer.close(lambda: False)]
    assert len(said) == 1
    assert f"gets no more reports, training goes on: {type(error).__name__}: {error} (" in said[0]
    assert f"{os.path.basename(__file__)}:" in said[0], "where it was raised"
    assert got == [0, 1]


def test_a_callback_that_hangs_is_said_while_the_run_trains_and_not_waited_for(monkeypatch):
    monkeypatch.setattr(module, "HANGING_FINISH_SEC", 0.0)
    begun, over = threading.Event(), threading.Event()

    def callback(each):
        begun.set()
        over.wait()

    writer = callback_writer("mine:callback", callback, CallbackFigures())
    writer.write(report(1), 0.0)
    begun.wait()
    later = time.monotonic() + module.HANGS_SEC
    (said,) = writer.write(report(2), later + 1)
    wanted = r"metrics_callback mine:callback has not returned for \d+ s\. Training goes on; its reports wait"
    assert re.match(wanted, said)
    assert writer.write(report(3), later + 2) == [], "once"
    monkeypatch.setattr(module, "HANGS_SEC", -1.0)
    assert writer.close(lambda: pytest.fail("it is waited for")) == [
        "metrics_callback mine:callback did not finish in time: its last reports may be missing."
    ]
    over.set()
    writer._thread.join()


def test_a_callback_that_hangs_holds_nothing_up_and_loses_the_oldest_reports():
    over = threading.Event()
    writer = callback_writer("mine:callback", lambda each: over.wait(), CallbackFigures())
    for step in range(MOST_QUEUED + 12):
        assert writer.write(report(step), 0.0) == []
    assert 10 <= writer.lost <= 12, "one or none is in the callback"
    said = writer.close(lambda: True)
    assert said == ["metrics_callback mine:callback did not finish in time: its last reports may be missing."]
    over.set()
    writer._thread.join()
