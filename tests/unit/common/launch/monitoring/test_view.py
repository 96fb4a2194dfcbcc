"""What a run says is shown, and kept in its logs."""

from __future__ import annotations

import io
import re

from rich.console import Console

from simul.common.launch.monitoring.view import EventLogDisplay, PlainDisplay


def test_what_is_said_is_shown_and_kept_from_life_to_life(tmp_path):
    screen = io.StringIO()
    path = tmp_path / "simul-supervisor.log"
    for sentence in ("worker 0 died (signal 9), restarting", "Resumed from checkpoint 7."):
        diary = EventLogDisplay(PlainDisplay(Console(file=screen), lambda snapshot: ""), path)
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
    EventLogDisplay(PlainDisplay(Console(file=screen), lambda snapshot: ""), tmp_path / "gone" / "log").say("stopping")
    assert "stopping" in screen.getvalue()
