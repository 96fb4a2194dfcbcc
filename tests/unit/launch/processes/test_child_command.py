"""`simul ...` as a child process, whose lines cannot be printed."""

from __future__ import annotations

import pytest

from simul.launch.processes import child_command
from simul.launch.processes.child_command import ChildCommand


@pytest.mark.parametrize("error", [BrokenPipeError(), ValueError("I/O operation on closed file")])
def test_the_lines_of_a_command_are_read_to_the_end_where_they_cannot_be_printed(error, monkeypatch):
    def fail(line: str) -> None:
        tried.append(line)
        raise error

    tried: list[str] = []
    monkeypatch.setattr(child_command, "print_text", fail)
    command = ChildCommand(["--help"], progress=True)
    command.wait()
    assert len(command.last_lines().splitlines()) > 10
    assert command.wait_for_line("no such line") is None
    assert len(tried) == 1
