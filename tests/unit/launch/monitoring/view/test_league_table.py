"""The league's table: as many columns as fit, the latest self first, and what is left out is said."""

from __future__ import annotations

import io

import pytest

from simul.common.runtime.terminal_console import SafeConsole
from simul.launch.monitoring.view.league_table import MOST_ROWS, league_table
from simul.launch.ratings.league_file import read_league
from tests.support.league import write_league


def drawn(root, width: int, *members: str) -> list[str]:
    write_league(root, members)
    console = SafeConsole(file=io.StringIO(), width=width)
    console.print(league_table(read_league(root), width))
    return console.file.getvalue().splitlines()


def test_win_rates_and_ratings_have_intervals(tmp_path):
    lines = drawn(tmp_path, 80, "random", "learner@7")
    assert lines[1].split() == ["Elo", "(95%)", "learner@7", "random"]
    assert lines[2].split()[0] == "learner@7"
    assert lines[2].split()[2] == "0.25"
    assert "0.18-0.34" in lines[3]
    assert " to " in lines[3]
    assert "Left out" not in "".join(lines)


@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_a_wide_matrix_is_cut_to_the_terminal(tmp_path, width):
    lines = drawn(tmp_path, width, *(f"past/{1000 + n}" for n in range(15)), "漢字" * 30, "[red]x\n\x1b[2J")
    assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)
    assert "…" not in "".join(line for line in lines if "漢" not in line), "no number is cut"
    text = " ".join(" ".join(lines).split())
    assert f"Left out: {17 - MOST_ROWS} of 17 rows and " in text
    assert "of 17 columns; `simul status --json` has all." in text
    if width >= 60:
        assert "past/1014" in lines[1]
