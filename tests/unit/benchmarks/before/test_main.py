"""Pairs of two trees: the interval, the verdict, and the order of the windows."""

from __future__ import annotations

import pytest

from benchmarks.before.main import AGAIN, interval, loses, measure_rounds, report
from simul.common.runtime.installation import ROOT


def rounds(*this: float, again: float = 1.0) -> list[dict[str, dict[str, float]]]:
    return [{"this": {"cpu_us": us}, "before": {"cpu_us": 1.0}, AGAIN: {"cpu_us": again}} for us in this]


@pytest.mark.parametrize(("count", "cut"), [(3, 0), (5, 0), (6, 0), (9, 1), (10, 1), (20, 5)])
def test_the_interval_holds_the_median_with_95_percent(count: int, cut: int) -> None:
    assert interval([*range(count)][::-1]) == (cut, count - 1 - cut)


def test_a_slip_beyond_five_percent_loses_and_noise_within_does_not() -> None:
    assert loses(rounds(1.2, 1.06, 1.01, 1.07, 1.06))
    assert not loses(rounds(1.2, 1.04, 1.01, 0.9, 1.05))


def test_every_tree_goes_first_in_turn_and_the_report_has_both_ratios(tmp_path) -> None:
    order: list[str] = []

    class Fake:
        def __init__(self, tree) -> None:
            self.name = "this" if tree == ROOT else "before"

        def measure(self, seconds: float) -> dict[str, float]:
            order.append(self.name)
            return {"cpu_us": 3.0 if self.name == "this" else 2.0}

        def close(self) -> None:
            order.append("closed")

    found = measure_rounds("cell", Fake, tmp_path, 3, 1.0, itself=True)
    assert order[:9:3] == ["this", "before", "before"]
    assert order[9:] == ["closed"] * 3
    (line,) = report("cell", found)
    assert "1.500 [1.500, 1.500] of 3 pairs" in line
    assert line.endswith("beside itself 1.000 [1.000, 1.000]")
