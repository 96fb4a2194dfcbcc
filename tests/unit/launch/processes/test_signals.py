"""The first signal asks for a clean stop, its echo changes nothing, a second one means now."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from simul.launch.processes import signals as module
from simul.launch.processes.signals import ECHO_SEC, Signals


@pytest.fixture
def signals() -> Iterator[Signals]:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under `nohup`
    one = Signals()
    one.install()
    yield one
    one.stop = False
    one.restore()
    signal.signal(signal.SIGHUP, before)


def test_a_stop_that_comes_twice_at_once_is_one_stop(signals, monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
        os.kill(os.getpid(), number)
        now += ECHO_SEC / 3
        assert (signals.stop, signals.now) == (True, False)
    now += ECHO_SEC
    os.kill(os.getpid(), signal.SIGTERM)
    assert signals.now


def test_a_terminal_that_closes_is_one_stop_however_often_it_says_so(signals, monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGHUP)
        now += 2 * ECHO_SEC
    assert (signals.stop, signals.now) == (True, False)
    os.kill(os.getpid(), signal.SIGINT)
    assert signals.now
