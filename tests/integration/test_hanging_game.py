"""A game whose constructor hangs: Ctrl-C ends the start at once, and kill -9 leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile

import psutil
import pytest

from simul.common.role.temporary import temporary_folder
from simul.common.runtime.installation import ROOT
from tests.support.waiting import PATIENCE_SEC, wait_for


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The system's folder for temporary files, ours and that of what we start."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path / "temporary"


@pytest.fixture
def starting(tmp_path, temporary):
    """(the `simul up` that asks the game for its spec, pid of the process where it hangs)"""
    config, pid_file = tmp_path / "run.yaml", tmp_path / "pid"
    config.write_text(f"game: tests.support.hanging:Hanging\ngame_options: {{pid_file: {pid_file}}}\n")
    line = [sys.executable, "-m", "simul.launch.cli", "up", str(config), "--run-dir", str(tmp_path / "run"), "--plain"]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True) as simul:
        yield simul, int(wait_for(lambda: pid_file.exists() and pid_file.read_text()))
        simul.kill()


def test_ctrl_c_ends_the_start(starting, temporary) -> None:
    simul, pid = starting
    simul.send_signal(signal.SIGINT)
    output, _ = simul.communicate(timeout=PATIENCE_SEC)
    assert simul.returncode == 0, output
    assert "there is no summary" in output
    wait_for(lambda: not psutil.pid_exists(pid))
    assert list(temporary.glob("simul-spec-*")) == []


def test_kill_9_leaves_no_process_and_its_folder_goes_with_the_next(starting, temporary) -> None:
    simul, pid = starting
    os.kill(simul.pid, signal.SIGKILL)
    simul.wait()
    wait_for(lambda: not psutil.pid_exists(pid))
    assert len(list(temporary.glob("simul-spec-*"))) == 1
    with temporary_folder("simul-other-"):
        assert list(temporary.glob("simul-spec-*")) == []
