"""Events of a run are shown, and kept in its log."""

from __future__ import annotations

import io
import re

from rich.console import Console

from simul.launch.monitoring.view.display import EventLogDisplay, PlainDisplay


def test_events_are_shown_and_kept_over_several_runs(tmp_path):
    screen = io.StringIO()
    path = tmp_path / "simul-supervisor.log"
    for sentence in ("worker 0 died (signal 9), restarting", "Resumed from checkpoint 7."):
        display = EventLogDisplay(PlainDisplay(Console(file=screen), lambda snapshot: ""), path)
        display.say(sentence)
        display.summary("the end")
        display.close()
    lines = path.read_text().splitlines()
    assert [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} simul-supervisor ", "", line) for line in lines] == [
        "worker 0 died (signal 9), restarting", "Resumed from checkpoint 7.",
    ]  # fmt: skip
    assert screen.getvalue().count("the end") == 2
    assert "worker 0 died" in screen.getvalue()


def test_an_event_that_cannot_be_written_is_still_shown(tmp_path):
    screen = io.StringIO()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in (tmp_path / "gone" / "log", tmp_path / "link"):
        display = EventLogDisplay(PlainDisplay(Console(file=screen), lambda snapshot: ""), path)
        display.say("stopping")
        display.say("stopped")
    assert [line.split(" ", 1)[1] for line in screen.getvalue().splitlines()] == [
        "stopping", "stopped", f"the log {tmp_path}/link cannot be written: a symbolic link", "stopping", "stopped",
    ]  # fmt: skip
    assert not (tmp_path / "elsewhere").exists()
