"""A curves.csv that grows: what is read of it, and how few rows are kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from simul.launch.monitoring.curves.curves_csv import CsvWriter
from simul.launch.monitoring.curves.figures import CurveReport
from simul.launch.monitoring.page.runs import curve_tail
from simul.launch.monitoring.page.runs.curve_tail import MOST_ROWS, CurveTail


def report(number: int, **figures: float) -> CurveReport:
    named = {name.replace("__", "/"): value for name, value in figures.items()}
    return CurveReport(decisions=10 * number, training_sec=float(number), time=1e9 + number, figures=named)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "curves.csv"


def values(tail: CurveTail, title: str) -> list[float | None]:
    place = 2
    for chart in tail.charts:
        if chart.title == title:
            return [row[place] for row in tail.rows]
        place += len(chart.columns())
    raise AssertionError(title)


def test_rows_come_as_they_are_written_and_a_new_opponent_begins_anew(path):
    writer, tail = CsvWriter(path.parent), CurveTail(path)
    tail.poll()
    assert (tail.rows, tail.fault) == ([], "")
    writer.write(report(1, learner__entropy=2.0), 0.0)
    tail.poll()
    writer.write(report(2, learner__entropy=1.5), 0.0)
    with path.open("a") as file:
        file.write("30,3,")  # a row that is being written
    generation = tail.generation
    tail.poll()
    assert values(tail, "entropy") == [2.0, 1.5]
    assert [row[:2] for row in tail.rows] == [[10.0, 1.0], [20.0, 2.0]]
    assert tail.generation == generation
    writer.close()
    writer.write(report(3, learner__entropy=1.0, win_rate__random=0.5), 0.0)
    tail.poll()
    assert tail.generation > generation
    assert values(tail, "entropy") == [2.0, 1.5, 1.0]
    assert values(tail, "win rate, recent games") == [None, None, 0.5]


def test_a_run_of_any_length_has_few_rows_whose_means_are_those_of_the_file(path):
    rows = 20 * MOST_ROWS + 7
    lines = "".join(f"{n},{n},{n},{n % 2}\n" for n in range(1, rows + 1))
    path.write_text(f"decisions,training_sec,time,learner/entropy\n{lines}")
    tail = CurveTail(path)
    tail.poll()
    assert MOST_ROWS <= len(tail.rows) < 2 * MOST_ROWS
    assert tail.rows[-1][0] == len(tail.rows) * tail.stride
    assert {row[2] for row in tail.rows} == {0.5}
    assert tail.tail() is not None
    assert tail.tail()[:2] == [rows, rows]


def test_a_long_file_is_read_piece_by_piece_to_its_end(path, monkeypatch):
    monkeypatch.setattr(curve_tail, "PIECE_BYTES", 1000)
    path.write_text("decisions,training_sec,time,learner/entropy\n" + "".join(f"{n},{n},{n},1\n" for n in range(500)))
    tail = CurveTail(path)
    tail.poll()
    first = len(tail.rows)
    tail.poll()
    assert 0 < first < len(tail.rows) < 500
    for _ in range(20):
        tail.poll()
    assert (len(tail.rows), tail.fault) == (500, "")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"a,b,c\n1,2,3\n", "no table of curves"),
        (b"\xff\xfe\0\0" * 100 + b"\n", "no table of curves"),
        (b'decisions,training_sec,time,"' + b"x" * 200_000 + b'"\n', "no table of curves"),
        (b"decisions,training_sec,time," + b"y" * 3_000_000 + b"\n1,1,1\n", "no table of curves"),
        (
            b"decisions,training_sec,time,learner/entropy\n" + b"9" * 3_000_000,
            "has a line of more than 2,097,152 bytes",
        ),
        (b"decisions,training_sec,time,learner/entropy\nnan,1,1,1\ninf,1,1,1\nx\n\n5,1,1,nan\n4,0,1,1\n", ""),
    ],
    ids=["other columns", "no text", "a long name", "a long header", "a line without an end", "no numbers"],
)
def test_a_hostile_file_is_a_sentence_or_left_out(path, content, fault):
    path.write_bytes(content)
    tail = CurveTail(path)
    for _ in range(3):
        tail.poll()
    assert fault in tail.fault
    assert [row[2:] for row in tail.rows] == ([] if fault else [[None]])


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_link_is_refused(path, tmp_path):
    other = tmp_path / "other"
    other.write_text("decisions,training_sec,time,learner/entropy\n1,1,1,1\n")
    path.symlink_to(other)
    tail = CurveTail(path)
    tail.poll()
    assert "cannot be read" in tail.fault
    assert tail.rows == []
    path.unlink()
    os.mkfifo(path)
    tail.poll()
    assert "not a regular file" in tail.fault
