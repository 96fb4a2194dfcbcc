import csv

import numpy as np
import pytest

from learner.reports import COLUMNS, FIGURES, STALL_AFTER_SEC, Journal, StallAlarm, Statistics, lag_histogram
from learner.schedules import linear


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


def test_the_alarm_speaks_once_and_only_when_unrolls_arrive():
    alarm = StallAlarm(now=0.0)
    assert not alarm.check(STALL_AFTER_SEC + 1, arrived=0)
    assert "not advanced for 61 s, although 7 unrolls" in alarm.check(STALL_AFTER_SEC + 1, arrived=7)
    assert alarm.raised
    assert not alarm.check(STALL_AFTER_SEC + 2, arrived=9)
    alarm.advanced(70.0, arrived=9)
    assert not alarm.raised
    assert not alarm.check(100.0, arrived=20)
    assert alarm.check(131.0, arrived=20)


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
    Journal(tmp_path, 30).close()
    assert (tmp_path / "learner.1.csv").read_text() == "old,header\n1,2\n"
    assert (tmp_path / "learner.csv").read_text().strip() == ",".join(COLUMNS)
    assert list((tmp_path / "tensorboard").iterdir())


def test_every_figure_of_an_algorithm_is_a_column():
    assert set(FIGURES) <= set(COLUMNS)


def test_schedules_end_at_their_last_value():
    assert [linear(1.0, 0.2, n, 100) for n in (0, 50, 100, 500)] == pytest.approx([1.0, 0.6, 0.2, 0.2])
