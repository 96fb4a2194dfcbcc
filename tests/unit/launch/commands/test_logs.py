"""`simul logs`: the moments that `--since` takes."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

import pytest

from simul.launch.commands.logs import moment


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("10m", 600), ("2h", 7200), ("1.5 d", 129_600)])
def test_a_span_is_counted_back_from_now(text, seconds):
    before = time.time()
    assert before - seconds <= moment(text) <= time.time() - seconds


def test_a_date_and_time_is_local_unless_it_says_otherwise():
    assert moment("2026-11-22 20:00") == datetime(2026, 11, 22, 20).timestamp()
    assert moment("2026-11-22") == datetime(2026, 11, 22).timestamp()
    assert moment("2026-11-22T20:00:00+00:00") == datetime(2026, 11, 22, 20, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("text", ["", "10", "ten minutes", "m", "-5m", "2026-13-01"])
def test_anything_else_is_refused_with_examples(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"10m or 2h, or a date and time such as"):
        moment(text)
