"""What others wrote neither moves a cursor, nor sets a clipboard, nor turns the direction of a line."""

from __future__ import annotations

import io

import pytest
from rich.table import Table
from rich.text import Text

from simul.common.runtime.terminal_console import SafeConsole
from simul.common.runtime.terminal_text import printable

HOSTILE = "a\x1b[2Jb\x9b31mc\x1b]52;c;ZXZpbA==\x07d\u202ee\u2066f\u200fg\rh\x08i\u2028j\ud800k"


def test_controls_and_marks_of_direction_are_shown():
    shown = printable(HOSTILE)
    assert shown.isprintable()
    assert shown.startswith(r"a\x1b[2Jb\x9b31mc\x1b]52;c;ZXZpbA==\x07d\u202ee\u2066f\u200fg")
    assert printable("two\nlines", keep="\n") == "two\nlines"
    assert printable("Pokémon, ポケモン") == "Pokémon, ポケモン"


@pytest.mark.parametrize("wrap", [str, Text, lambda text: _table(text)])
def test_a_console_keeps_its_own_colours_and_no_others(wrap):
    file = io.StringIO()
    console = SafeConsole(file=file, force_terminal=True, color_system="standard", width=200)
    console.print(wrap(HOSTILE), style="red", markup=False, highlight=False)
    written = file.getvalue()
    assert "\x1b[31m" in written
    for control in ("\x1b[2J", "\x9b", "\x1b]52", "\x07", "\u202e", "\u2066", "\u200f", "\r", "\x08", "\u2028"):
        assert control not in written, repr(control)


def _table(text: str) -> Table:
    table = Table()
    table.add_column(Text(text))
    table.add_row(Text(text))
    return table
