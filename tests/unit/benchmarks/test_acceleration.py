"""What the benchmark of the accelerated simulator makes of its measurements, and one measurement."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import acceleration as bench
from benchmarks.acceleration import Pair, broken, ratio, table


def test_the_ratio_is_the_median_of_those_of_the_same_battles():
    pairs = [Pair(200.0, 100.0), Pair(900.0, 300.0), Pair(100.0, 100.0)]
    assert ratio(pairs) == 2.0
    assert table({1: pairs}).splitlines()[-1] == "| gen1randombattle | 200 | 100 | 2.00 | 1.00 to 3.00 | 1.5 |"


def test_a_promise_that_is_not_kept_is_named():
    assert broken({8: [Pair(1.5, 1.0)], 9: [Pair(1.79, 1.0)]}) == [9]
    assert broken({9: [Pair(1.8, 1.0)]}) == []


def test_only_the_same_battles_are_compared(monkeypatch):
    played: list[bool] = []
    decisions = {True: 6, False: 6}

    def play(*_, stock: bool):
        played.append(stock)
        return {"decisions": decisions[stock], "cpu_us_per_decision": 3.0 if stock else 2.0}

    monkeypatch.setattr(bench, "_play", play)
    assert bench.measure(Path("node"), 1, 2, 1, stock_first=True) == Pair(3.0, 2.0)
    assert bench.measure(Path("node"), 1, 2, 1, stock_first=False) == Pair(3.0, 2.0)
    assert played == [True, False, False, True]
    decisions[True] = 5
    with pytest.raises(RuntimeError, match="did not play the same battles"):
        bench.measure(Path("node"), 1, 2, 1, stock_first=False)
