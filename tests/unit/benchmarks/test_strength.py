"""The rows of bench-strength: their settings are accepted, and a finished row is not run again."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks.learn_check import Failed
from benchmarks.strength import main as strength
from benchmarks.strength.curves import curve
from benchmarks.strength.rows import TABLES, Row
from simul.common.config.loader import load_config
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.file_lock import hold_lock
from simul.launch.monitoring.curves.curves_csv import BASE_COLUMNS
from tests.support.checkpoints import write_small_checkpoint

ROWS = {row.name: row for rows in TABLES.values() for row in rows}
ROW = Row("some", 1000, opponents=("random", "damage"))
HERE = "commit 1a2b, cpu fast"


def test_rows_have_names_of_their_own_and_settings_that_are_accepted():
    assert len(ROWS) == sum(len(rows) for rows in TABLES.values())
    for row in ROWS.values():
        load_config(row.config, [f"seed={row.seed}", *row.settings])


@pytest.fixture
def commands(monkeypatch):
    """What is run instead of `simul`; a start learns what it is asked for."""
    made = []

    def simul(arguments, log, limit_sec):
        made.append(arguments)
        if arguments[0] == "eval":
            games = int(arguments[arguments.index("--games") + 1])
            return json.dumps({"win_rate": 0.75, "wilson_95": [0.7, 0.8], "episodes": games})
        run = log.parent / "run"
        write_small_checkpoint(run / "checkpoints" / "000000001", 1, spec=GameSpec("a", 1, 2))
        so_far = strength.decisions_so_far(log.parent)
        asked = int(arguments[arguments.index("--stop-after-decisions") + 1])
        (run / "summary.json").write_text(json.dumps({"run_decisions": so_far + min(asked, 600)}))
        return ""

    monkeypatch.setattr(strength, "simul", simul)
    monkeypatch.setattr(strength, "conditions_now", lambda: HERE)
    return made


def _played(commands):
    return [line[line.index("--opponent") + 1] for line in commands if line[0] == "eval"]


def test_a_row_goes_on_where_it_stopped_and_is_not_run_again(tmp_path, commands):
    strength.fill(ROW, tmp_path / "some", games=10)
    starts = [line for line in commands if line[0] == "up"]
    assert [line[line.index("--stop-after-decisions") + 1] for line in starts] == ["1000", "400"]
    assert _played(commands) == ["random", "damage"]
    commands.clear()
    strength.fill(ROW, tmp_path / "some", games=10)
    assert commands == []
    table = strength.table([ROW], tmp_path)
    assert "| some | 1,000 | 11 | 0.750 [0.700, 0.800] | 0.750" in table
    assert f"| 10 | 0.00 | 0 | {HERE} |" in table
    assert "| some | 1,000 | 11 | - | - | - | - | - |  |" in strength.table([ROW], tmp_path / "nowhere")


def test_a_match_of_fewer_battles_is_played_again(tmp_path, commands):
    strength.fill(ROW, tmp_path / "some", games=4)
    commands.clear()
    strength.fill(ROW, tmp_path / "some", games=10)
    assert _played(commands) == ["random", "damage"]
    strength.fill(ROW, tmp_path / "some", games=4)
    assert "| 10 |" in strength.table([ROW], tmp_path)


@pytest.mark.parametrize("content", ["", "[]", '{"win_rate": 0.7', "{}", '{"win_rate": null}'])
def test_a_damaged_file_is_missing_which_is_said(content, tmp_path, commands, capsys):
    folder = tmp_path / "some"
    strength.fill(ROW, folder, games=10)
    commands.clear()
    (folder / "damage.json").write_text(content)
    assert "| 0.750 [0.700, 0.800] | - | 10 |" in strength.table([ROW], tmp_path)
    assert f"{folder / 'damage.json'} cannot be read and counts as missing: " in capsys.readouterr().err
    strength.fill(ROW, folder, games=10)
    assert _played(commands) == ["damage"]
    (folder / "used.json").write_text(content or "torn")
    (folder / "run" / "summary.json").write_text(content)
    assert strength.decisions_so_far(folder) == 0
    assert "| ? | ? |" in strength.table([ROW], tmp_path)


def test_a_start_that_fails_is_counted_and_one_that_was_killed_leaves_the_time_unknown(tmp_path, commands, monkeypatch):
    folder, learns, left = tmp_path / "some", strength.simul, []

    def fails(arguments, log, limit_sec):
        left.append((folder / "used.json").read_text())
        raise Failed("the device is missing")

    monkeypatch.setattr(strength, "simul", fails)
    with pytest.raises(Failed):
        strength.fill(ROW, folder, games=10)
    assert "| - | 0.00 | 0 |" in strength.table([ROW], tmp_path)
    (folder / "used.json").write_text(left[0])
    monkeypatch.setattr(strength, "simul", learns)
    strength.fill(ROW, folder, games=10)
    assert "| 10 | ? | ? |" in strength.table([ROW], tmp_path)


def test_a_row_of_before_conditions_were_kept_is_shown_without(tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "used.json").write_text('{"sec": 120.0, "core_sec": 3600.0}')
    result = {"win_rate": 0.75, "wilson_95": [0.7, 0.8], "episodes": 3000, "wanted": 3000}
    for name in ROW.opponents:
        (tmp_path / "some" / f"{name}.json").write_text(json.dumps(result))
    assert "| 3,000 | 1.00 | 2 |  |" in strength.table([ROW], tmp_path)


def test_a_row_has_one_starter_at_a_time(tmp_path, commands):
    (tmp_path / "some").mkdir()
    with (
        hold_lock(tmp_path / "some" / strength.LOCK, ""),
        pytest.raises(ConfigError, match=r"Another process fills .*some\. Wait for it"),
    ):
        strength.fill(ROW, tmp_path / "some", games=10)
    assert commands == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--row", "nope"], "--row nope: expected one of 5m-11, "),
        (["--table", "shipped", "--row", "wide"], "--row wide: expected one of 5m-11, 5m-12, 5m-13, 20m"),
        (["--games", "0"], "expected a whole number, at least 1"),
        (["--picture", "/nowhere/a.svg"], "there is no folder /nowhere"),
        (["--picture", "a.txt"], "expected a name that ends in .png or .svg"),
    ],
)
def test_bad_arguments_are_refused_before_the_first_row(arguments, sentence, monkeypatch, commands, capsys):
    monkeypatch.setattr(sys, "argv", ["strength", *arguments])
    with pytest.raises(SystemExit, match="2"):
        strength.main()
    assert sentence in capsys.readouterr().err
    assert commands == []


def test_without_a_curve_there_is_no_picture(tmp_path, monkeypatch, capsys):
    picture = tmp_path / "a.svg"
    monkeypatch.setattr(sys, "argv", ["strength", "--show", "--folder", str(tmp_path), "--picture", str(picture)])
    assert strength.main() == 0
    assert "None of these rows has a curve yet" in capsys.readouterr().err
    assert not picture.exists()


def test_a_curve_has_the_evaluations_of_the_run_and_ends_with_the_match(tmp_path, commands):
    row = Row("some", 500, opponents=("damage",))
    strength.fill(row, tmp_path / "some", games=10)
    figures = ("score", "decisions_learned", *(f"win_rate{end}/damage" for end in ("", "_low", "_high")))
    lines = [
        [*BASE_COLUMNS, *(f"evaluation/{name}" for name in figures)],
        *([*("0" for _ in BASE_COLUMNS), *values] for values in (
            [""] * 5, ["0.25", "-2", "0.25", "0.125", "0.375"], ["0.25", "-2", "0.25", "0.125", "0.375"],
            ["0.5", "-1", "0.5", "0.375", "0.625"],
        )),
    ]  # fmt: skip
    (tmp_path / "some" / "run" / "curves.csv").write_text("".join(f"{','.join(line)}\n" for line in lines))
    points = [(-2, 0.25, 0.125, 0.375), (-1, 0.5, 0.375, 0.625), (0, 0.75, 0.7, 0.8)]
    assert curve(tmp_path / "some", "damage") == points
    assert curve(tmp_path / "some", "random") == []
