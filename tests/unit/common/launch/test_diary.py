"""What a run said is found afterwards in its logs."""

from __future__ import annotations

import errno
import io
import os
import re

import pytest
from rich.console import Console

from common.launch.diary import Diary
from common.launch.view import PlainDisplay


def test_what_is_said_is_shown_and_kept_from_life_to_life(tmp_path):
    screen = io.StringIO()
    path = tmp_path / "simul-supervisor.log"
    for sentence in ("worker 0 died (signal 9), restarting", "Resumed from checkpoint 7."):
        diary = Diary(PlainDisplay(Console(file=screen), lambda snapshot: ""), path)
        diary.say(sentence)
        diary.summary("the end")
        diary.close()
    lines = path.read_text().splitlines()
    assert [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d simul-supervisor ", "", line) for line in lines] == [
        "worker 0 died (signal 9), restarting", "Resumed from checkpoint 7.",
    ]  # fmt: skip
    assert screen.getvalue().count("the end") == 2
    assert "worker 0 died" in screen.getvalue()


def test_without_a_place_to_write_it_is_still_shown(tmp_path):
    screen = io.StringIO()
    Diary(PlainDisplay(Console(file=screen), lambda snapshot: ""), tmp_path / "gone" / "log").say("stopping")
    assert "stopping" in screen.getvalue()


class _Full(io.StringIO):
    """A file on a disk without room."""

    error = errno.ENOSPC

    def write(self, text: str) -> int:
        raise OSError(self.error, os.strerror(self.error))


def test_lines_that_go_to_a_full_disk_stop_nothing() -> None:
    display = PlainDisplay(Console(file=_Full()), lambda snapshot: "")
    for _ in range(3):
        display.say("learner.csv could not be written")


def test_a_terminal_that_is_gone_is_no_full_disk(monkeypatch) -> None:
    monkeypatch.setattr(_Full, "error", errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        PlainDisplay(Console(file=_Full()), lambda snapshot: "").say("on we go")
