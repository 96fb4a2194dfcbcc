"""`make test-races` repeats what has too few runs, and names what failed in any of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import races
from tests.support.races import Run

FILES = ("tests/conftest.py", "tests/support/races.py")


def test_runs_go_on_where_they_stopped_and_a_failure_is_found_in_any_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def run(file: str) -> Run:
        ran.append(file)
        bad = ran == [FILES[0]]
        return Run(file, races._content(file), int(bad), 1.0, ["a::test"] if bad else [], "")

    monkeypatch.setattr(races, "_run", run)
    record = tmp_path / "runs" / "record.jsonl"
    arguments = [*FILES, "--loops", "0", "--jobs", "1"]
    assert races.main([*arguments, "--times", "1"], record) == 1
    assert ran == [*FILES]
    assert races.main([*arguments, "--times", "3"], record) == 1
    assert ran == [*FILES] * 3
    assert "1 of 3 runs failed: a::test\n" in capsys.readouterr().out
    monkeypatch.setattr(races, "_content", lambda file: "mended")
    assert races.main([*arguments, "--list"], record) == 0


def test_a_file_that_ends_without_naming_a_test_failed_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert races.report([Run(FILES[0], "", 139, 1.0, [], "Segmentation fault")])
    assert "exit code 139: Segmentation fault" in capsys.readouterr().out


def test_a_real_run_reports_the_tests_that_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(races, "ROOT", tmp_path)
    (tmp_path / "test_it.py").write_text("def test_good(): pass\ndef test_bad(): assert 0\n")
    found = races._run("test_it.py")
    assert (found.exit_code, found.failed) == (1, ["test_it.py::test_bad"])
