"""What lies between two reports that count from the server's start."""

import pytest

from inference_server.loadtest.served import batches_between, stages_between

FIRST = {"decisions": 100, "batches": 50, "batch_histogram": {"2": 50}, "stage_us": {"forward": 30.0}}
LAST = {
    "decisions": 900, "batches": 60, "batch_histogram": {"2": 50, "128": 10},
    "stage_us": {"forward": 20.0, "reply": 4.0},
}  # fmt: skip


def test_means_and_histograms_are_of_the_span_alone() -> None:
    assert batches_between(FIRST, LAST) == (80.0, {"128": 10})
    stages = stages_between(FIRST, LAST)
    assert stages == {"forward": pytest.approx((20 * 900 - 30 * 100) / 800), "reply": pytest.approx(4.5)}


def test_an_idle_span_says_nothing() -> None:
    assert batches_between(FIRST, FIRST) is None
    assert stages_between(FIRST, FIRST) is None
