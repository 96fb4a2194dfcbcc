"""The verdict of a soak: what grew, who died, and which readings are compared."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from benchmarks import soak
from benchmarks.harness.processes import MeasurementFailed
from benchmarks.harness.run_files import (
    CURVES,
    LARGEST,
    LOGS,
    MIB,
    MILESTONES,
    OTHER,
    PAST,
    REPLAY,
    REST,
    ROWS,
    measure_files,
    rows_due,
)
from benchmarks.harness.run_status import RunStatus
from benchmarks.soak import Reading, verdict
from simul.common.config.checkpoint_meta import META_FILE, read_meta
from simul.common.config.schema import Config, LearnerConfig
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.launch.monitoring.curves.figures import CurvePosition, CurveRecorder
from simul.launch.monitoring.snapshot import Snapshot
from tests.support.checkpoints import write_small_checkpoint

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


def test_rows_due_are_those_that_the_recorder_reports() -> None:
    due, seconds = 0, 4000
    recorder = CurveRecorder(CurvePosition())
    for second in range(seconds):
        snapshot = _snapshot(float(second))
        recorder.advance(snapshot)
        due += recorder.record(snapshot) is not None
    assert due <= rows_due(0.0, seconds) + 1
    assert due == pytest.approx(rows_due(0.0, seconds), rel=0.35)  # whole seconds: a row each 2 s where 1.5 are due
    assert rows_due(7200.0, 10_800.0) == pytest.approx(360.0)


def _snapshot(second: float) -> Snapshot:
    return Snapshot(
        phase="training", run_dir="", time=second, elapsed_sec=second, ready_sec=second, decisions_per_sec=None,
        battles_per_sec=None, server={}, learner={}, workers={}, processes=[], events=[],
    )  # fmt: skip


def test_files_of_a_run_directory_are_counted_by_part(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "run")
    run_dir.create()
    try:
        for version in (1, 2, 3, 4):
            _checkpoint(run_dir.checkpoints / f"{version:09d}", milestone=version < 4)
        _checkpoint(run_dir.checkpoints / "past" / "000000002", milestone=True)
        _checkpoint(run_dir.checkpoints / "best-000000003", milestone=True)
        (run_dir.checkpoints / "best").symlink_to("best-000000003")
        for name, size in {"curves.csv": 2, "logs/a.log": 3, "logs/a.log.1": 4, "wandb": 5}.items():
            (run_dir.root / name).write_bytes(b"\n" * size * MIB)
        found = measure_files(run_dir)
    finally:
        run_dir.remove()
    assert {name: found[name] for name in (MILESTONES, PAST, OTHER)} == {MILESTONES: 2, PAST: 1, OTHER: 3}
    assert {name: found[name] for name in (CURVES, LOGS, REPLAY)} == {CURVES: 2, LOGS: 7, REPLAY: 0}
    assert found[ROWS] == 2 * MIB
    assert found[REST] == pytest.approx(5, abs=0.001)


def _checkpoint(path: Path, *, milestone: bool) -> None:
    write_small_checkpoint(path, 1, spec=GameSpec("g", 1, 2))
    meta = msgspec.structs.replace(read_meta(path), milestone=milestone)
    (path / META_FILE).write_bytes(msgspec.json.encode(meta))


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
    late = [replace(one, figures={**one.figures, "x, MiB": 1.0}) for one in readings[-100:]]
    assert _failed([*readings[:-100], *late]) == ["x, MiB: last readings / first"]


def test_the_largest_checkpoint_is_compared_with_the_first_that_there_was() -> None:
    def failed(size: Callable[[float], float]) -> list[str]:
        return _failed([
            replace(one, figures={LARGEST: size(one.seconds / HOUR)}) for one in _readings(lambda hour: 100.0)
        ])  # fmt: skip

    assert failed(lambda hour: 0.0) == [], "there is none"
    assert failed(lambda hour: 5.0 if hour > 4 else 0.0) == []
    assert failed(lambda hour: 5.0 if hour > 1.3 else 0.0) == [], "the first came amid the first readings"
    assert failed(lambda hour: hour if hour > 4 else 0.0) == ["largest checkpoint, MiB: last readings / first"]


def test_a_run_without_a_status_is_a_sentence(tmp_path: Path) -> None:
    log = tmp_path / "up.log"
    log.write_text("last words")
    ended = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    ended.wait()
    with pytest.raises(MeasurementFailed, match="exit code 3 before its time was over, with a status"):
        soak.wait_until(RunStatus(RunDir(tmp_path), ended, log), 0.0)


@pytest.mark.parametrize("outcome", [0, 1, MeasurementFailed("it ended")])
def test_the_folder_of_a_run_that_failed_is_kept_and_named(
    outcome: int | Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(options: object, run_dir: RunDir, log: Path) -> int:
        log.write_text("log")
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(sys, "argv", ["soak"])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(soak, "soak", run)
    with pytest.raises(MeasurementFailed) if isinstance(outcome, Exception) else nullcontext():
        assert soak.main() == outcome
    kept = list(tmp_path.glob("simul-soak-*/up.log"))
    assert len(kept) == bool(outcome)
    assert all(f"kept: {path.parent}" in capsys.readouterr().err for path in kept)


def test_deaths_an_exit_code_and_a_missing_summary_fail() -> None:
    steady = _readings(lambda hour: 100.0)
    assert _failed(steady, {**SUMMARY, "restarts": {"simul-learner-0": 1}}) == ["deaths of processes"]
    assert _failed(steady, code=1) == ["exit code"]
    assert _failed(steady, {}) == ["deaths of processes", "books that do not balance"]


def test_too_few_readings_are_a_sentence() -> None:
    with pytest.raises(MeasurementFailed, match="too few readings"):
        verdict([Reading(100.0, 1.0, {})], SUMMARY, 0, CONFIG)


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
