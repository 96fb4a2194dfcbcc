"""What the benchmark of the accelerated simulator makes of its measurements, and one measurement."""

from __future__ import annotations

from benchmarks.acceleration import Pair, broken, ratio, table


def test_the_ratio_is_the_median_of_those_of_the_same_battles():
    pairs = [Pair(200.0, 100.0), Pair(900.0, 300.0), Pair(100.0, 100.0)]
    assert ratio(pairs) == 2.0
    assert table({1: pairs}).splitlines()[-1] == "| gen1randombattle | 200 | 100 | 2.00 | 1.00 to 3.00 | 1.5 |"


def test_a_promise_that_is_not_kept_is_named():
    assert broken({8: [Pair(1.5, 1.0)], 9: [Pair(1.79, 1.0)]}) == [9]
    assert broken({9: [Pair(1.8, 1.0)]}) == []
