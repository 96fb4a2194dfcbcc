"""Text that is safe for a terminal: what is escaped, and that every printer goes through it."""

from __future__ import annotations

import ast
import io
import json

import pytest
from rich.table import Table
from rich.text import Text

from simul.common.runtime.installation import ROOT
from simul.common.runtime.terminal_console import SafeConsole
from simul.common.runtime.terminal_text import LINES, printable

# Files that write what only a parent process or this project wrote.
OTHERS = {
    "launch/commands/logs.py",  # colours its lines, each of which `printable` made
    "launch/evaluation/eval_runner.py",  # its own numbers, as progress
    "launch/setup/probe_python.py",
    "inference_server/loadtest/subject.py",  # JSON for the load test
    "env_worker/__main__.py",  # JSON for the supervisor
    "env_worker/terminal/__main__.py",  # JSON for the page
    "env_worker/game_watch.py",  # a sentence for the supervisor, which cleans it
    "env_worker/games/pokemon/install/checks.py",
    "env_worker/games/pokemon/install/setup_node.py",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ümlaut, 日本, \\x1b as text", "plain, ümlaut, 日本, \\x1b as text"),
        ("\x1b[2J\x9b2J\a\b\r\x7f", "\\u001b[2J\\u009b2J\\u0007\\b\\r\\u007f"),
        ("\x1b]52;c;aGk=\a", "\\u001b]52;c;aGk=\\u0007"),
        ("\u202a\u202e\u2066\u2069\u200e\u200f\u061c", "\\u202a\\u202e\\u2066\\u2069\\u200e\\u200f\\u061c"),
        ("\u200b\u2028\u2029\ufeff\x85", "\\u200b\\u2028\\u2029\\ufeff\\u0085"),
        ("\ud800", "\\ud800"),
        ("two\nlines\tand a tab", "two\\nlines\\tand a tab"),
    ],
)
def test_what_a_terminal_would_obey_is_shown_instead(text, shown):
    assert printable(text) == shown
    assert printable(shown) == shown


def test_lines_and_tabs_stay_where_a_printer_wants_them():
    assert printable("a\n\tb\x1b", LINES) == "a\n\tb\\u001b"


def test_json_stays_the_same_json():
    data = {"name": "\x1b\x7f\x9b\u202e\U000e0041é"}
    assert json.loads(printable(json.dumps(data, ensure_ascii=False))) == data


@pytest.mark.parametrize("wrapped", [lambda text: text, Text, lambda text: _table(text)], ids=["str", "Text", "Table"])
def test_a_console_prints_no_markup_and_no_control_character_but_its_own_colours(wrapped):
    output = io.StringIO()
    console = SafeConsole(file=output, width=100, force_terminal=True, color_system="standard")
    console.print(wrapped("[red]a[/red] [link=http://b]c[/link] :smile: \x1b[2J\x9b\u202e"), style="red")
    shown = output.getvalue()
    assert "[red]a[/red] [link=http://b]c[/link] :smile: \\u001b[2J\\u009b\\u202e" in shown
    assert shown.count("\x1b") == shown.count("\x1b[31m") + shown.count("\x1b[0m") > 0


def _table(cell: str) -> Table:
    table = Table.grid()
    table.add_row(Text("x"), cell)
    return table


def _printers(source: str) -> list[str]:
    """Calls that write more than a constant past `printable`, `print_text`, `complain` and `SafeConsole`."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [
        ast.unparse(call)
        for call in calls
        if ast.unparse(call.func) in ("print", "Console", "sys.stdout.write", "sys.stderr.write")
        and not (call.args and isinstance(call.args[0], ast.Constant))
        and "printable(" not in ast.unparse(call)
    ]


def test_no_printer_writes_text_past_it():
    files = [
        file.relative_to(ROOT).as_posix()
        for folder in ("common", "env_worker", "inference_server", "launch", "learner")
        for file in (ROOT / folder).rglob("*.py")
        if "node_modules" not in file.parts
    ]
    found = {file for file in files if _printers((ROOT / file).read_text(encoding="utf-8"))}
    assert found == OTHERS, "use print_text, complain or SafeConsole there"
