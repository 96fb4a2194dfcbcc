"""What cannot be written is dropped: nothing is raised, nothing waits long, a terminal that is gone is a hang-up."""

from __future__ import annotations

import os
import pty
import signal
import sys
from collections.abc import Iterator

import pytest

from simul.launch.monitoring.view import output as module
from simul.launch.monitoring.view.output import Output

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and terminals of POSIX")


@pytest.fixture
def hang_ups() -> Iterator[list[int]]:
    """The SIGHUPs that this process got."""
    got: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, frame: got.append(number))
    yield got
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_what_can_be_written_is_written_whole(pipe) -> None:
    reading, writing = pipe
    text = "größer\n" * 2000
    assert Output(writing).write(text) == len(text)
    assert os.read(reading, 65536).decode() == text


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device there")
def test_a_full_disk_stops_nothing(hang_ups) -> None:
    with open("/dev/full", "wb") as full:
        for _ in range(3):
            Output(full.fileno()).write("learner.csv could not be written\n")
    assert hang_ups == []


def test_a_reader_that_went_away_gets_nothing_more(hang_ups) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    output = Output(writing)
    output.write("one")
    output.write("two")
    os.close(writing)
    assert hang_ups == []


def test_a_reader_that_stands_still_is_skipped_until_there_is_room(pipe, monkeypatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SEC", 0.01)
    reading, writing = pipe
    output = Output(writing)
    for _ in range(300):
        output.write("x" * 1024)  # more than any pipe holds
    held = len(os.read(reading, 1 << 20))
    assert held < 300 * 1024
    output.write("again")
    assert os.read(reading, 1 << 20).endswith(b"again")


@pytest.mark.parametrize("nohup", [False, True])
def test_a_terminal_that_is_gone_is_a_hang_up_and_under_nohup_nothing(hang_ups, nohup) -> None:
    terminal, inside = pty.openpty()
    output = Output(inside)
    assert output.isatty()
    output.write("here")
    os.close(terminal)
    if nohup:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    output.write("gone")
    output.write("gone")
    os.close(inside)
    assert hang_ups == ([] if nohup else [signal.SIGHUP])
