from __future__ import annotations

from dataclasses import replace

from benchmarks.serving.promises import Repeat, asides, lines, stages
from benchmarks.serving.stall import Stall
from benchmarks.serving.stand import Found


def _found(rate: float, *, p50: float = 100.0, batch: float = 64.0) -> Found:
    return Found(rate, 1e6 / rate, p50, 2 * p50, batch, {"forward": 20.0, "reply": 1.0})


def _repeat(plain: float, recorded: float) -> Repeat:
    found = {name: _found(plain) for name in ("plain", "3 past", "2x8 other", "envs2", "envs8")}
    found["swapped"] = replace(_found(plain), stall=Stall(3000.0, 2200.0, 900.0, 10))
    found |= {"recorded": _found(recorded), "2x8": _found(1000.0, batch=15.9), "1x1": _found(1000.0, p50=400.0)}
    return Repeat(found, {1: (300.0, 300.0), 128: (128 * 20.0, 128 * 20.0)}, {"plain": (22.0, 22.0)})


def test_lines_are_medians_of_ratios_within_a_repeat() -> None:
    repeats = [_repeat(40_000.0, 30_000.0), _repeat(20_000.0, 19_000.0), _repeat(40_000.0, 38_000.0)]
    found = {line.name: line for line in lines("float32", repeats, (2, 8))}
    same = found["float32, 4 x 32: served / forward at its own mean batch"]
    assert round(same.found, 3) == 0.88
    assert same.kept
    at_128 = found["float32, 4 x 32: served / forward at batch 128"]
    assert round(at_128.found, 3) == 0.8
    assert round(found["float32: recorded / not recorded"].found, 3) == 0.95
    assert round(found["float32, 1 x 1: round trip p50 minus the forward of one row, us"].found) == 100
    assert found["float32: cost of an action at 8 envs / at 2"].kept
    assert str(same).startswith("PASS")
    assert stages(repeats, "plain") == {"forward": 20.0, "reply": 1.0}
    assert found["float32: what a swap adds to the longest round trip, us"].found == 800
    assert "64.0 rows a batch instead of 64.0, 1.00 of the rate" in asides(repeats, "greedy")[0]
