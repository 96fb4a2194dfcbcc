"""Times of calls, the rows of the table, and the script from one end to the other."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from benchmarks.harness.processes import MeasurementFailed
from benchmarks.tables import main as bench
from benchmarks.tables.games import time_calls
from benchmarks.tables.main import Found, table, text
from benchmarks.tables.worker_start import start_worker
from simul.common.role.run_directory import RunDir


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


def test_processor_time_does_not_count_sleep() -> None:
    (slept,) = time_calls([lambda: time.sleep(0.05)], untimed=0)
    assert slept < 50_000.0


def test_the_table_has_medians_and_verdicts() -> None:
    rows = [Found("moves, median us", [5.0, 3.0, 4.0], 40.0), Found("a", [1234.0], None), Found("b", [2.0], 1.0)]
    assert table(rows).splitlines()[2:] == [
        "| moves, median us | 4 | 3 to 5 | at most 40.00 | met |",
        "| a | 1,234 | 1,234 to 1,234 |  |  |",
        "| b | 2 | 2 to 2 | at most 1.00 | not met |",
    ]
    assert text(rows[1:2]) == "a  1,234  1,234 to 1,234"


def test_the_script_runs_on_few_games(monkeypatch, capsys, tmp_path) -> None:
    report = tmp_path / "found.json"
    monkeypatch.setattr(
        sys, "argv",
        ["bench-tables", "--repeats", "1", "--games", "1", "--markdown", "--json", str(report),
         "--only", "duo", "fantasyland_14", "self_play", "memory"],
    )  # fmt: skip
    assert bench.main() in (0, 1)  # whether the promises are kept depends on the machine
    printed = capsys.readouterr().out
    for words in (
        "Blokus Duo, legal moves of a position, median us", "14 cards in Fantasyland, most ms", "at most 50.00",
        "decisions a second", "recorded session of Blokus Classic",
    ):  # fmt: skip
        assert words in printed
    assert b'"self_play, decisions a second"' in report.read_bytes()


def test_the_start_of_a_worker_is_timed_until_its_first_decision(tmp_path) -> None:
    found = start_worker("cartpole", tmp_path / "run", tmp_path / "numba")
    assert found["s"] > 0.0
    assert 20.0 < found["MB"] < 1000.0


def test_a_worker_that_ends_is_told_with_the_end_of_its_log(monkeypatch, tmp_path) -> None:
    def write_broken(self: RunDir, config: object) -> None:
        (self.root / "config.yaml").write_text("game: [")

    monkeypatch.setattr(RunDir, "write_config", write_broken)
    with pytest.raises(MeasurementFailed, match="the worker ended; the end of its log"):
        start_worker("cartpole", tmp_path / "run", tmp_path / "numba")


@pytest.mark.slow
def test_without_a_cache_the_worker_compiles_into_it(tmp_path: Path) -> None:
    cache = tmp_path / "numba"
    cache.mkdir()
    assert start_worker("ofc", tmp_path / "first", cache)["s"] > 0.0
    assert any(cache.rglob("*.nbi"))
