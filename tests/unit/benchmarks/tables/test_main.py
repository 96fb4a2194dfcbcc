"""Times of calls, and the rows of the table."""

from __future__ import annotations

import time

from benchmarks.tables.games import time_calls
from benchmarks.tables.main import Found, table


def _burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_every_call_is_timed_once_and_the_first_is_warm() -> None:
    made: list[int] = []

    def calls():
        for number in range(3):
            assert len(made) == (number + 4 if number else 0)  # timed before the next one is asked for
            yield lambda number=number: (made.append(number), _burn(0.002 * (number == 1)))

    times = time_calls(calls(), untimed=4)
    assert made == [0, 0, 0, 0, 0, 1, 2]
    assert len(times) == 3
    assert times[1] > 1900.0
    assert times[1] == max(times)
    assert time_calls([lambda: time.sleep(0.05)], untimed=0)[0] < 50_000.0, "processor time"


def test_the_table_has_medians_and_verdicts() -> None:
    rows = [Found("moves, median us", [5.0, 3.0, 4.0], 40.0), Found("a", [1234.0], None), Found("b", [2.0], 1.0)]
    assert table(rows).splitlines()[2:] == [
        "| moves, median us | 4 | 3 to 5 | at most 40.00 | met |",
        "| a | 1,234 | 1,234 to 1,234 |  |  |",
        "| b | 2 | 2 to 2 | at most 1.00 | not met |",
    ]
