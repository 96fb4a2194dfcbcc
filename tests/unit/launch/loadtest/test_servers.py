"""What lies between two reports that count from the server's start."""

import pytest

from simul.launch.loadtest.servers import ServerReports, histogram_between, mean_batch_between, stages_between

FIRST = {"decisions": 100, "batches": 50, "batch_histogram": {"2": 50}, "stage_us": {"forward": 30.0}}
LAST = {
    "decisions": 900, "batches": 60, "batch_histogram": {"2": 50, "128": 10},
    "stage_us": {"forward": 20.0, "reply": 4.0},
}  # fmt: skip


def test_means_and_histograms_are_of_the_span_alone() -> None:
    assert mean_batch_between(FIRST, LAST) == 80.0
    assert histogram_between(FIRST, LAST) == {"128": 10}
    stages = stages_between(FIRST, LAST)
    assert stages == {"forward": pytest.approx((20 * 900 - 30 * 100) / 800), "reply": pytest.approx(4.5)}


def test_an_idle_span_says_nothing() -> None:
    assert mean_batch_between(FIRST, FIRST) is None
    assert stages_between(FIRST, FIRST) is None


def test_what_a_running_server_does_not_tell_is_not_known() -> None:
    first, last = ({name: report[name] for name in ("decisions", "batches")} for report in (FIRST, LAST))
    assert mean_batch_between(first, last) == 80.0
    assert histogram_between(first, last) is None
    assert stages_between(first, last) is None
    assert mean_batch_between({**first, "batches": 0}, {**last, "batches": 0}) is None  # too old to count them


def test_a_span_needs_two_reports_inside() -> None:
    reports = ServerReports()
    assert reports.last == {}
    for at in (1.0, 2.0, 3.0):
        reports.add(at, {"decisions": at})
    assert reports.between(1.5, 9.0) == ({"decisions": 2.0}, {"decisions": 3.0})
    assert reports.between(2.5, 9.0) is None
    assert reports.last == {"decisions": 3.0}
