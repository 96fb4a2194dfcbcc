"""Which process owns a run directory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import msgspec
import psutil
import pytest

from simul.common.errors import ConfigError
from simul.common.role import run_lock
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import ProcessIdentity, living_owner, this_process
from simul.launch.commands.status import down, status
from tests.support.waiting import wait_for


@pytest.fixture
def run_dir(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.create()
    return run_dir


def test_a_living_owner_is_refused_until_it_leaves(run_dir):
    run_lock.check_unowned(run_dir)
    run_lock.claim(run_dir)
    with pytest.raises(ConfigError, match=r"already active.*simul down"):
        run_lock.check_unowned(run_dir)
    run_lock.release(run_dir)
    run_lock.check_unowned(run_dir)


def test_a_reused_pid_is_not_the_owner(run_dir):
    assert this_process().alive()
    later = ProcessIdentity(os.getpid(), this_process().create_time - 100)
    assert not later.alive()
    run_lock.write_atomically(run_dir, "supervisor.pid", later)
    assert living_owner(run_dir) is None


def test_a_torn_file_owns_nothing(run_dir):
    (run_dir.root / "supervisor.pid").write_text('{"pid": 1')
    assert living_owner(run_dir) is None
    assert run_lock.read_json(run_dir, "supervisor.pid") == {}


def test_nothing_is_left_aside_after_an_atomic_write(run_dir):
    run_lock.write_atomically(run_dir, "status.json", {"a": 1})
    assert run_lock.read_json(run_dir, "status.json") == {"a": 1}
    assert not list(run_dir.root.glob(".status*"))


def test_an_owner_file_that_was_removed_is_written_again(run_dir):
    run_lock.claim(run_dir)
    (run_dir.root / run_lock.OWNER_FILE).unlink()
    assert run_lock.living_owner(run_dir) is None
    run_lock.restore_claim(run_dir)
    assert run_lock.living_owner(run_dir) == run_lock.this_process()


def test_the_status_of_a_run_that_has_none_yet_names_the_process_that_starts_it(run_dir, monkeypatch):
    with pytest.raises(ConfigError, match=r"There is no run in .* \(no status.json\)"):
        status(run_dir.root, as_json=False)
    run_lock.claim(run_dir)
    with pytest.raises(ConfigError, match=rf"is starting \(process {os.getpid()}\); it has no figures yet"):
        status(run_dir.root, as_json=False)
    foreign = msgspec.structs.replace(this_process(), machine="node-7/0123/4")
    run_lock.write_atomically(run_dir, "supervisor.pid", foreign)
    with pytest.raises(ConfigError, match=rf"process {os.getpid()} of the machine node-7 is starting it, or has died"):
        status(run_dir.root, as_json=False)
    gone = msgspec.structs.replace(this_process(), create_time=0.0)
    run_lock.write_atomically(run_dir, "supervisor.pid", gone)
    with pytest.raises(ConfigError, match="There is no run in"):
        status(run_dir.root, as_json=False)


def test_a_run_that_has_no_status_yet_is_found_below_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_dir = RunDir("runs/new")
    run_dir.create()
    run_lock.claim(run_dir)
    assert run_lock.choose_run(None, active_only=True).root == run_dir.root
    run_lock.release(run_dir)
    with pytest.raises(ConfigError, match="No run is active"):
        run_lock.choose_run(None, active_only=False)


@pytest.fixture
def elsewhere(run_dir, monkeypatch):
    """Its owner is said to be this very process, of another machine."""
    monkeypatch.setattr(run_lock, "ELSEWHERE_SEC", 0.5)
    owner = msgspec.structs.replace(this_process(), machine="node-7/0123/4")
    run_lock.write_atomically(run_dir, "supervisor.pid", owner)
    run_lock.write_atomically(run_dir, "status.json", {"time": 0})
    return run_dir


def test_a_pid_of_another_machine_says_nothing_about_the_process_that_has_it_here(elsewhere):
    assert living_owner(elsewhere) is None
    run_lock.check_unowned(elsewhere)


def test_a_run_of_another_machine_is_active_while_its_status_changes(elsewhere, monkeypatch):
    monkeypatch.setattr(run_lock, "ELSEWHERE_SEC", 100.0)
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.wait(0.01):
            run_lock.write_atomically(elsewhere, "status.json", {"time": (number := number + 1)})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with pytest.raises(ConfigError, match=r"already active.*of the machine node-7\. Stop it there"):
            run_lock.check_unowned(elsewhere)
        with pytest.raises(ConfigError, match=r"of the machine node-7\. Stop it there"):
            down(elsewhere.root)  # and this process is not signalled
    finally:
        done.set()
        writer.join()


def _named(run_dir, process: subprocess.Popen[bytes]) -> None:
    """A run directory of others says that the process is its supervisor."""
    wait_for(lambda: psutil.Process(process.pid).cmdline())
    run_lock.write_atomically(
        run_dir, "supervisor.pid", ProcessIdentity(process.pid, psutil.Process(process.pid).create_time())
    )


def test_a_run_directory_of_others_ends_no_process_that_is_no_supervisor(run_dir):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        _named(run_dir, process)
        with pytest.raises(ConfigError, match=rf"names process {process.pid}, .*Nothing was stopped"):
            down(run_dir.root)
        process.communicate(b"\n")
    assert process.returncode == 0


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make another user's file")
def test_down_believes_no_file_of_another_user(run_dir):
    program = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); input()  # simul"
    with subprocess.Popen([sys.executable, "-c", program, "up"], stdin=subprocess.PIPE) as process:
        _named(run_dir, process)
        assert run_lock.is_own_supervisor(run_dir, living_owner(run_dir))
        os.chown(run_dir.root / "supervisor.pid", 65534, 65534)
        with pytest.raises(ConfigError, match="Nothing was stopped"):
            down(run_dir.root)
        process.communicate(b"\n")
