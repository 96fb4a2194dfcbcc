import csv
import math

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from simul.learner.reports import COLUMNS, FIGURES, STALL_AFTER_SEC, Journal, StallAlarm, Statistics, lag_histogram
from simul.learner.schedules import linear


def test_lag_is_counted_per_step_and_the_bootstrap_row_is_no_step(draw):
    statistics = Statistics(now=100.0)
    steps = statistics.learned([draw.unroll(3, version=10), draw.unroll(5, version=4)], version=10)
    assert steps == statistics.decisions == 8
    assert statistics.lag()["mean"] == pytest.approx(5 * 6 / 8)
    assert statistics.lag()["max"] == 6
    assert statistics.lag()["histogram"] == {"0": 3, "5-8": 5}
    statistics.wait_sec = 1.0
    assert statistics.rate(104.0) == 2.0
    assert statistics.busy_share(104.0) == 0.75


def test_histogram_covers_every_lag():
    lag = np.arange(40)
    assert lag_histogram(lag) == {"0": 1, "1": 1, "2": 1, "3-4": 2, "5-8": 4, "9-16": 8, "17+": 23}


def test_the_alarm_speaks_once_where_unrolls_arrive_and_nothing_is_learned():
    alarm = StallAlarm(now=0.0)
    for now in range(0, 61, 10):
        assert not alarm.check(now - 1.0, arrived=now)
    assert "not advanced for 61 s, although 7 unrolls" in StallAlarm(now=0.0).check(61.0, arrived=7)
    assert "not advanced for 60 s, although 60 unrolls" in alarm.check(60.0, arrived=60)
    assert alarm.raised
    assert not alarm.check(STALL_AFTER_SEC + 2, arrived=61)
    alarm.advanced(70.0, arrived=61)
    assert not alarm.raised
    assert not alarm.check(100.0, arrived=62)
    assert alarm.check(131.0, arrived=63)


def test_the_alarm_speaks_once_where_no_unroll_arrives_any_longer():
    alarm = StallAlarm(now=0.0)
    assert not alarm.check(STALL_AFTER_SEC - 1, arrived=0)
    assert alarm.check(STALL_AFTER_SEC + 1, arrived=0).startswith("No unroll has arrived for 61 s")
    assert not alarm.check(STALL_AFTER_SEC + 1, arrived=0)
    alarm.advanced(100.0, arrived=50)
    assert not alarm.check(101.0, arrived=53)  # part of a batch; then nothing more
    assert not alarm.check(160.0, arrived=53)
    assert alarm.check(161.0, arrived=53).startswith("No unroll has arrived for 60 s")
    assert not alarm.check(1000.0, arrived=53)
    assert not alarm.raised


def test_the_csv_goes_on_after_a_restart_and_another_header_is_set_aside(tmp_path):
    row = dict.fromkeys(COLUMNS, 1.5)
    for decisions in (10, 20):
        journal = Journal(tmp_path, decisions, every_sec=0.0)
        journal.write(row, decisions)
        journal.close()
    rows = list(csv.reader((tmp_path / "learner.csv").read_text().splitlines()))
    assert rows[0] == list(COLUMNS)
    assert len(rows) == 3
    (tmp_path / "learner.csv").write_text("old,header\n1,2\n")
    journal = Journal(tmp_path, 30)
    journal.write(row, 30)
    journal.close()
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
    journal = Journal(tmp_path, 0, every_sec=0.0)
    said = [journal.write(dict.fromkeys(COLUMNS, float(step)), step) for step in (10, 20)]
    assert [len(sentences) for sentences in said] == [2, 0], "each once a minute"
    assert said[0][0].startswith("learner.csv could not be written: Is a directory. 1 rows wait for it, 0 were lost.")
    assert said[0][1].startswith("TensorBoard's file could not be written: ")
    (tmp_path / "learner.csv").rmdir()
    (tmp_path / "tensorboard").unlink()
    back = journal.write(dict.fromkeys(COLUMNS, 30.0), 30)
    assert back == [
        "learner.csv is written again, with the 3 rows that waited; 0 were lost.",
        "TensorBoard's file is written again, with the 3 rows that waited; 0 were lost.",
    ]
    assert journal.write(dict.fromkeys(COLUMNS, 40.0), 40) == []
    journal.close()
    rows = list(csv.DictReader((tmp_path / "learner.csv").read_text().splitlines()))
    assert [row["entropy"] for row in rows] == ["10", "20", "30", "40"]
    assert _shown(tmp_path) == [(10, 10.0), (20, 20.0), (30, 30.0), (40, 40.0)]


def test_tensorboard_forgets_what_a_former_life_learned_in_vain(tmp_path):
    for begin, steps in ((0, (10, 20, 30)), (20, (25, 35))):
        journal = Journal(tmp_path, begin, every_sec=0.0)
        for step in steps:
            journal.write(dict.fromkeys(COLUMNS, 1.0) | {"kl": math.nan}, step)
        journal.close()
    assert [step for step, _ in _shown(tmp_path)] == [10, 25, 35]


def test_every_figure_of_an_algorithm_is_a_column():
    assert set(FIGURES) <= set(COLUMNS)


def test_schedules_end_at_their_last_value():
    assert [linear(1.0, 0.2, n, 100) for n in (0, 50, 100, 500)] == pytest.approx([1.0, 0.6, 0.2, 0.2])
