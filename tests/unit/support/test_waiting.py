"""A time-out names what did not come."""

from __future__ import annotations

import pytest

from tests.support.waiting import wait_for


def test_the_condition_and_its_variables_are_named() -> None:
    arrived = [3]
    with pytest.raises(AssertionError, match=r"not within 0 s: .*len\(arrived\) == 2.* with arrived=\[3\]"):
        wait_for(lambda: len(arrived) == 2, timeout_sec=0.0)
    wait_for(lambda: len(arrived) == 1)
