"""Which process owns a run directory."""

from __future__ import annotations

import os

import pytest

from simul.common.config.run_directory import RunDir
from simul.common.launch.processes import run_lock
from simul.common.launch.processes.run_lock import ProcessIdentity, living_owner, this_process
from simul.common.protocol.errors import ConfigError


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
