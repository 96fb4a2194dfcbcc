"""The verdict of a soak: what grew, who died, and which readings are compared."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from benchmarks import soak
from benchmarks.harness.processes import MeasurementFailed
from benchmarks.soak import Reading, verdict

HOUR = 3600.0
SUMMARY = {"accounting": {}, "restarts": {"simul-learner-0": 0}}


@pytest.fixture(autouse=True)
def balanced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "imbalances", lambda summary: [])


def _readings(memory: Callable[[float], float], hours: float = 8.0) -> list[Reading]:
    """One a minute; `memory` by the time in hours."""
    minutes = range(1, round(60 * hours) + 1)
    return [Reading(60.0 * minute, 1e5 * minute, {"learner, MiB": memory(minute / 60)}) for minute in minutes]


def _failed(readings: list[Reading], summary: dict[str, object] = SUMMARY, code: int = 0) -> list[str]:
    return [promise.name for promise in verdict(readings, summary, code) if not promise.kept]


def test_what_rises_in_the_first_hour_only_is_no_growth() -> None:
    assert _failed(_readings(lambda hour: 100.0 * min(1.0, hour))) == []


def test_a_slow_leak_is_growth() -> None:
    assert _failed(_readings(lambda hour: 100.0 + hour)) == ["learner, MiB: last readings / first"]
    assert _failed(_readings(lambda hour: 100.0 + 0.5 * hour)) == []  # 3%


def test_one_high_reading_is_no_growth() -> None:
    assert _failed(_readings(lambda hour: 300.0 if hour == 8.0 else 100.0)) == []


def test_a_run_of_one_hour_warms_up_for_a_quarter_of_it() -> None:
    assert _failed(_readings(lambda hour: 100.0 * min(1.0, 4 * hour), hours=1.0)) == []
    assert _failed(_readings(lambda hour: 100.0 * min(1.0, 2 * hour), hours=1.0)) != []


def test_what_was_not_there_at_first_has_grown() -> None:
    readings = _readings(lambda hour: 100.0)
    late = [Reading(one.seconds, one.decisions, {**one.figures, "x, MiB": 1.0}) for one in readings[-100:]]
    assert _failed([*readings[:-100], *late]) == ["x, MiB: last readings / first"]


def test_deaths_an_exit_code_and_a_missing_summary_fail() -> None:
    steady = _readings(lambda hour: 100.0)
    assert _failed(steady, {**SUMMARY, "restarts": {"simul-learner-0": 1}}) == ["deaths of processes"]
    assert _failed(steady, code=1) == ["exit code"]
    assert _failed(steady, {}) == ["deaths of processes", "books that do not balance"]


def test_too_few_readings_are_a_sentence() -> None:
    with pytest.raises(MeasurementFailed, match="too few readings"):
        verdict([Reading(100.0, 1.0, {})], SUMMARY, 0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--hours", "0"), "argument --hours: expected a number above 0, got 0.0"),
        (("--every", "nan"), "argument --every: expected a number above 0, got nan"),
        (("--hours", "0.1"), "--hours 0.1 is too short for a reading every 60 s: set --every lower"),
    ],
)
def test_bad_input_is_a_sentence(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["soak", *arguments])
    with pytest.raises(SystemExit):
        soak.main()
    assert says in capsys.readouterr().err
