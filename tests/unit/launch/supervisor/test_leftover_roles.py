"""Roles of a supervisor that was killed, which the next start finds in status.json."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import msgspec
import psutil
import pytest

from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import this_process, write_atomically
from simul.launch.monitoring.snapshot import ProcessFigures, RunMonitor
from simul.launch.processes.process_group import ProcessGroup
from simul.launch.processes.role_reports import RoleReports
from simul.launch.supervisor import leftover_roles as module
from simul.launch.supervisor.game_spec import StartStopped
from simul.launch.supervisor.leftover_roles import end_leftover_roles, leftover_roles
from tests.support.waiting import wait_for


@pytest.fixture
def run_dir(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.create()
    return run_dir


@pytest.fixture
def process(run_dir) -> Iterator[subprocess.Popen[bytes]]:
    """A role of the run, until it reads something."""
    line = [sys.executable, "-c", "input()", "--run-dir", str(run_dir.root)]
    with subprocess.Popen(line, stdin=subprocess.PIPE) as process:
        wait_for(lambda: psutil.Process(process.pid).cmdline())  # empty for a moment of its start
        yield process
        process.kill()


def written(run_dir: RunDir, process: subprocess.Popen[bytes], name: str, machine: str = "") -> list[ProcessFigures]:
    """What is found where status.json names a process."""
    started = psutil.Process(process.pid).create_time()
    figures = ProcessFigures(name, process.pid, started, "ready", 0, 0.0, 0.0, 0.0, 0.0, 0.0, machine)
    write_atomically(run_dir, "status.json", {"processes": [msgspec.to_builtins(figures)]})
    return leftover_roles(run_dir)


@pytest.mark.parametrize("machine", [this_process().machine, "", "node-7/0123/4"])
def test_they_are_ended_on_their_own_machine_only(run_dir, process, machine, monkeypatch):
    monkeypatch.setattr(module, "ORPHAN_SEC", 0.0)
    left, said = written(run_dir, process, "simul-worker-0", machine), []
    end_leftover_roles(left, said.append, lambda: False)
    if machine.startswith("node-7"):
        assert (left, said, process.poll()) == ([], [], None)
    else:
        assert process.wait() == -9
        ended = "the last supervisor was killed; its processes have ended (simul-worker-0 too late: killed)"
        assert said == [ended]


def test_a_process_that_was_not_started_for_the_run_is_none_of_it(run_dir):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        wait_for(lambda: psutil.Process(process.pid).cmdline())
        assert written(run_dir, process, "simul-worker-0") == []
        process.communicate(b"\n")


def test_a_learner_that_saves_is_waited_for_and_not_killed(run_dir, process, monkeypatch):
    monkeypatch.setattr(module, "ORPHAN_SEC", 0.0)
    monkeypatch.setattr(module, "SAY_SEC", 0.0)
    said = []

    def end_when_said() -> bool:
        if said and not process.stdin.closed:
            process.communicate(b"\n")
        return False

    end_leftover_roles(written(run_dir, process, "simul-learner-0"), said.append, end_when_said)
    assert process.returncode == 0
    assert said == [
        "the last supervisor was killed; waiting for simul-learner-0, at most 600 s",
        "the last supervisor was killed; its processes have ended",
    ]


def test_a_stop_while_a_learner_saves_is_heard_and_leaves_it_alone(run_dir, process):
    with pytest.raises(StartStopped):
        end_leftover_roles(written(run_dir, process, "simul-learner-0"), print, lambda: True)
    assert process.poll() is None


def test_a_start_that_waits_for_them_lists_them_while_they_live(run_dir, process):
    """In status.json, which it writes: another start finds them where this one ends before."""
    reports = RoleReports()
    monitor = RunMonitor("run", reports, ProcessGroup(run_dir, reports))
    monitor.leftovers = written(run_dir, process, "simul-learner-0")
    (listed,) = monitor.take_snapshot("starting", 0.0).processes
    assert (listed.pid, listed.state) == (process.pid, "ending")
    process.communicate(b"\n")
    assert monitor.take_snapshot("starting", 0.0).processes == []


@pytest.mark.parametrize(
    "status",
    [b"", b"5", b"null", b'{"processes": [1]}', b'{"processes": [{}]}', b'{"processes": [{"pid": "1"}]}', b"\xff"],
)
def test_a_damaged_status_names_none(run_dir, status):
    (run_dir.root / "status.json").write_bytes(status)
    assert leftover_roles(run_dir) == []
