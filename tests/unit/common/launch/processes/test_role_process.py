"""One life of a role process: how it ends, and its log."""

from __future__ import annotations

import shutil
import sys

import pytest

from simul.common.config.run_directory import RunDir
from simul.common.launch.processes.role_process import RoleProcess


@pytest.fixture
def run_dir(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.create()
    return run_dir


def test_a_role_whose_log_cannot_be_written_runs_without_one(run_dir):
    shutil.rmtree(run_dir.logs)
    child = RoleProcess("learner", 0, run_dir, ["sh", "-c", "echo a last word >&2; exit 1", "sh"])
    child._process.wait(100)
    assert child.exit_reason() == "exit code 1"
    assert child.log_tail() == ""


@pytest.mark.parametrize("asked", [True, False])
def test_a_sigterm_of_ours_is_a_good_end(tmp_path, asked):
    run_dir = RunDir(tmp_path)
    run_dir.create()
    child = RoleProcess("learner", 0, run_dir, [sys.executable, "-c", "import time; time.sleep(60)"])
    if asked:
        child.request_stop()
    else:
        child._process.terminate()
    child._process.wait(100)
    assert child.exited_cleanly() is asked
