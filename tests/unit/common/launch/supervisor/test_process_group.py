"""Processes that the system does not give."""

from __future__ import annotations

import errno
import sys

import pytest

from simul.common.config.run_directory import RunDir
from simul.common.launch.monitoring.state import RunState
from simul.common.launch.supervisor import processes
from simul.common.launch.supervisor.process_group import Fleet, RoleDied
from simul.common.launch.supervisor.restarts import LONGEST_DELAY_SEC, MOST_FAILED_STARTS

END_AT_ONCE = [sys.executable, "-c", "pass"]


def _no_process(*_: object) -> None:
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


@pytest.fixture
def fleet(tmp_path):
    """A fleet whose only process has ended."""
    run_dir = RunDir(tmp_path)
    run_dir.create()
    fleet = Fleet(run_dir, RunState(), lambda role: END_AT_ONCE)
    fleet.start("learner", 1, 1)
    fleet.places["learner", 0].child._process.wait(100)
    fleet.restart_dead(0.0)
    yield fleet
    fleet.kill_all()


def test_a_restart_that_gets_no_process_is_tried_again(fleet, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(processes, "_popen", _no_process)
        failed = "the learner could not be started (Resource temporarily unavailable), trying again"
        assert fleet.restart_dead(LONGEST_DELAY_SEC) == [failed]
        assert fleet.restart_dead(LONGEST_DELAY_SEC) == [], "it waits"
    assert fleet.places["learner", 0].restarts == 0
    assert fleet.restart_dead(2 * LONGEST_DELAY_SEC) == []
    assert fleet.places["learner", 0].restarts == 1


def test_restarts_that_get_no_process_end_the_run_in_the_end(fleet, monkeypatch):
    monkeypatch.setattr(processes, "_popen", _no_process)
    turns = [
        turn * LONGEST_DELAY_SEC for turn in range(1, MOST_FAILED_STARTS)
    ]  # its first life was a failed start, too
    for now in turns[:-1]:
        assert len(fleet.restart_dead(now)) == 1
    with pytest.raises(RoleDied, match=r"the learner could not be started .* too often"):
        fleet.restart_dead(turns[-1])
