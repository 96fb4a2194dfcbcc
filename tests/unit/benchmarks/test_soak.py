"""The verdict of a soak: what grew, who died, and which readings are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks import soak
from benchmarks.harness.processes import MeasurementFailed
from benchmarks.harness.run_files import CURVES, LARGEST, LOGS, MILESTONES, OTHER, PAST, REPLAY, ROWS, rows_due
from benchmarks.soak import Reading, verdict
from simul.common.config.schema import Config, LearnerConfig

HOUR = 3600.0
CONFIG = Config(learner=LearnerConfig(milestone_every_decisions=1_000_000))  # a milestone each ten minutes
SUMMARY = {"accounting": {}, "restarts": {"simul-learner-0": 0}}


@pytest.fixture(autouse=True)
def balanced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "imbalances", lambda summary: [])


def _files(hour: float, **other: float) -> dict[str, float]:
    """Of a run whose files grow as they should, but for `other`."""
    rows = rows_due(0.0, hour * HOUR)
    files = {MILESTONES: hour * 6 // 1, PAST: 0.0, OTHER: 3.0, ROWS: rows, CURVES: 4 * rows / 1024,
             LOGS: 0.1 * hour, REPLAY: 0.0}  # fmt: skip
    return {**files, **other}


def _readings(
    memory: Callable[[float], float], hours: float = 8.0, files: Callable[[float], dict[str, float]] = _files
) -> list[Reading]:
    """One a minute; `memory` and `files` by the time in hours."""
    minutes = range(1, round(60 * hours) + 1)
    return [
        Reading(60.0 * minute, 1e5 * minute, {"learner, MiB": memory(minute / 60)}, files(minute / 60))
        for minute in minutes
    ]


def _failed(readings: list[Reading], summary: dict[str, object] = SUMMARY, code: int = 0) -> list[str]:
    return [promise.name for promise in verdict(readings, summary, code, CONFIG) if not promise.kept]


@pytest.mark.parametrize("hours", [0.34, 1.0, 8.0, 168.0])
def test_files_may_grow_at_their_rate(hours: float) -> None:
    assert _failed(_readings(lambda hour: 100.0, hours)) == []


@pytest.mark.parametrize(
    ("what", "grows", "fails"),
    [
        (MILESTONES, 12.0, "milestones: new ones"),
        (PAST, 6.0, "past selves: new ones"),
        (OTHER, 1.0, "other checkpoints: most"),
        (ROWS, 400.0, "rows of curves.csv: new ones"),
        (CURVES, 10.0, "curves: KiB of a row"),
        (LOGS, 2.0, "logs, MiB an hour"),
        (REPLAY, 1024.0, "replay, MiB"),
    ],
)
def test_files_that_grow_faster_fail(what: str, grows: float, fails: str) -> None:
    assert _failed(_readings(lambda hour: 100.0, 8.0, lambda hour: _files(hour, **{what: grows * hour}))) == [fails]


@pytest.mark.parametrize(
    ("memory", "hours", "grew"),
    [
        (lambda hour: 100.0 * min(1.0, hour), 8.0, False),  # the first hour is warm-up
        (lambda hour: 100.0 * min(1.0, 4 * hour), 1.0, False),  # of a shorter run its first quarter
        (lambda hour: 100.0 * min(1.0, 2 * hour), 1.0, True),
        (lambda hour: 100.0 + 0.5 * hour, 8.0, False),  # 3%
        (lambda hour: 100.0 + hour, 8.0, True),
        (lambda hour: 300.0 if hour == 8.0 else 100.0, 8.0, False),
    ],
)
def test_memory_that_rises_after_the_warm_up_is_growth(memory, hours: float, grew: bool) -> None:
    assert _failed(_readings(memory, hours)) == ["learner, MiB: last readings / first"] * grew


def test_the_largest_checkpoint_is_compared_with_the_first_that_there_was() -> None:
    def failed(size: Callable[[float], float]) -> list[str]:
        return _failed([
            replace(one, figures={LARGEST: size(one.seconds / HOUR)}) for one in _readings(lambda hour: 100.0)
        ])  # fmt: skip

    assert failed(lambda hour: 0.0) == [], "there is none"
    assert failed(lambda hour: 5.0 if hour > 4 else 0.0) == []
    assert failed(lambda hour: 5.0 if hour > 1.3 else 0.0) == [], "the first came amid the first readings"
    assert failed(lambda hour: hour if hour > 4 else 0.0) == ["largest checkpoint, MiB: last readings / first"]


def test_deaths_an_exit_code_and_a_missing_summary_fail() -> None:
    steady = _readings(lambda hour: 100.0)
    assert _failed(steady, {**SUMMARY, "restarts": {"simul-learner-0": 1}}) == ["deaths of processes"]
    assert _failed(steady, code=1) == ["exit code"]
    assert _failed(steady, {}) == ["deaths of processes", "books that do not balance"]


def test_too_few_readings_are_a_sentence() -> None:
    with pytest.raises(MeasurementFailed, match="too few readings"):
        verdict([Reading(100.0, 1.0, {})], SUMMARY, 0, CONFIG)
