"""Times of calls, and the rows of the table."""

from __future__ import annotations

import time

from benchmarks.tables.games import time_calls


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
