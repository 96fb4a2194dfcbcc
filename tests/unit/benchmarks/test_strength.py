"""The rows of bench-strength: their settings are accepted, and a finished row is not run again."""

from __future__ import annotations

import json

import pytest

from benchmarks.strength import main as strength
from benchmarks.strength.curves import curve
from benchmarks.strength.rows import TABLES, Row
from simul.common.config.loader import load_config
from simul.common.protocol.specs import GameSpec
from tests.support.checkpoints import write_small_checkpoint

ROWS = {row.name: row for rows in TABLES.values() for row in rows}


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
            return json.dumps({"win_rate": 0.75, "wilson_95": [0.7, 0.8]})
        run = log.parent / "run"
        write_small_checkpoint(run / "checkpoints" / "000000001", 1, spec=GameSpec("a", 1, 2))
        so_far = strength.decisions_so_far(log.parent)
        asked = int(arguments[arguments.index("--stop-after-decisions") + 1])
        (run / "summary.json").write_text(json.dumps({"run_decisions": so_far + min(asked, 600)}))
        return ""

    monkeypatch.setattr(strength, "simul", simul)
    return made


def test_a_row_goes_on_where_it_stopped_and_is_not_run_again(tmp_path, commands):
    row = Row("some", 1000, opponents=("random", "damage"))
    strength.fill(row, tmp_path / "some", games=10)
    starts = [line for line in commands if line[0] == "up"]
    assert [line[line.index("--stop-after-decisions") + 1] for line in starts] == ["1000", "400"]
    assert [line[line.index("--opponent") + 1] for line in commands if line[0] == "eval"] == ["random", "damage"]
    commands.clear()
    strength.fill(row, tmp_path / "some", games=10)
    assert commands == []
    assert "| some | 1,000 | 11 | 0.750 [0.700, 0.800] | 0.750" in strength.table([row], tmp_path)
    assert "| some | 1,000 | 11 | - | - |" in strength.table([row], tmp_path / "nowhere")


def test_a_curve_has_the_evaluations_of_the_run_and_ends_with_the_match(tmp_path, commands):
    row = Row("some", 500, opponents=("damage",))
    strength.fill(row, tmp_path / "some", games=10)
    name = "evaluation/win_rate"
    (tmp_path / "some" / "run" / "curves.csv").write_text(
        f"evaluation/decisions_learned,{name}/damage,{name}_low/damage,{name}_high/damage\n"
        ",,,\n-2,0.25,0.125,0.375\n-2,0.25,0.125,0.375\n-1,0.5,0.375,0.625\n"
    )
    points = [(-2, 0.25, 0.125, 0.375), (-1, 0.5, 0.375, 0.625), (0, 0.75, 0.7, 0.8)]
    assert curve(tmp_path / "some", "damage") == points
    assert curve(tmp_path / "some", "random") == []
