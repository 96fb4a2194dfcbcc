"""One life of a role process: how it ends, and its log."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from simul.common.config.schema import Config
from simul.common.role.run_directory import RunDir
from simul.common.runtime.installation import ROOT
from simul.launch.processes.log_rotation import rotate_logs
from simul.launch.processes.role_process import RoleProcess, role_command
from tests.support.waiting import PATIENCE_SEC


@pytest.fixture
def run_dir(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.create()
    return run_dir


def test_of_a_role_whose_log_cannot_be_written_the_last_words_are_kept(run_dir):
    (run_dir.logs / "simul-learner-0.log").symlink_to(run_dir.root / "elsewhere")
    child = RoleProcess("learner", 0, run_dir, ["sh", "-c", "echo a last word >&2; exit 2", "sh"])
    child._process.wait(100)
    assert (child.exit_reason(), child.error_message()) == ("exit code 2", "a last word")
    assert child.log_fault == f"the log {child.log} cannot be written: a symbolic link"
    assert not (run_dir.root / "elsewhere").exists()


def test_a_log_is_rotated_while_its_process_writes_and_its_tail_is_that_of_the_new_one(run_dir):
    (run_dir.logs / "simul-learner-0.log").write_text("of a life before\n" * 100)
    os.mkfifo(run_dir.root / "fifo")
    line = f"echo first >&2; read line <{run_dir.root / 'fifo'}; echo second >&2"
    child = RoleProcess("learner", 0, run_dir, ["sh", "-c", line, "sh"])
    with (run_dir.root / "fifo").open("w") as fifo:
        rotate_logs(run_dir.logs, 100_000)
        assert not (run_dir.logs / "simul-learner-0.log.1").exists()
        rotate_logs(run_dir.logs, 1000)
        fifo.write("go on\n")
    child._process.wait(100)
    assert child.log_tail() == "second"
    assert (run_dir.logs / "simul-learner-0.log.1").read_text().endswith("of a life before\nfirst\n")
    assert sorted(path.name for path in run_dir.logs.iterdir()) == ["simul-learner-0.log", "simul-learner-0.log.1"]


@pytest.mark.parametrize("asked", [True, False])
def test_a_sigterm_of_ours_is_a_good_end(run_dir, asked):
    child = RoleProcess("learner", 0, run_dir, [sys.executable, "-c", "import time; time.sleep(60)"])
    if asked:
        child.request_stop()
    else:
        child._process.terminate()
    child._process.wait(100)
    assert child.exited_cleanly() is asked


def test_a_game_of_the_working_directory_is_found_and_its_other_files_shadow_nothing(run_dir, tmp_path):
    run_dir.write_config(Config(game="own_game:Corridor"))
    (tmp_path / "own_game.py").write_text("import sibling\nfrom simul_examples import Corridor\n")
    (tmp_path / "sibling.py").touch()
    shutil.copy(ROOT / "examples" / "custom_env.py", tmp_path / "simul_examples.py")
    for shadow in ("numpy.py", "msgspec.py", "simul.py", "common.py"):
        (tmp_path / shadow).write_text("raise RuntimeError('a file of the working directory shadows a module')")
    line = [*role_command("env_worker"), "--run-dir", str(run_dir.root), "--print-spec"]
    code = f"import os, subprocess, sys; os.chdir({str(tmp_path)!r})\n"
    code += "from simul.launch.processes.role_process import role_environment\n"
    code += f"sys.exit(subprocess.run({line!r}, env=role_environment(1)).returncode)"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, json.loads(done.stdout)["name"]) == (0, "own_game:Corridor"), done.stderr


@pytest.mark.parametrize("folder", ["common", "env_worker", "inference_server", "launch", "learner"])
def test_a_second_import_name_is_refused(folder):
    done = subprocess.run([sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True)
    assert f"ImportError: import simul.{folder}: a second name makes a second copy of every module" in done.stderr


FOREGROUND = """
import sys
from simul.launch.processes import role_process
role_process.import_path = lambda: {path!r}
sys.exit(role_process.run_in_foreground("module", []))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals end a process at once there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("handled", [True, False])
def test_a_signal_to_a_command_alone_ends_what_it_runs_in_the_foreground(tmp_path, number, handled):
    """`handled`: the module stops by itself, by STOP_SIGNAL; else it knows no signals, as while it is imported."""
    (tmp_path / "module.py").write_text(
        "import time\nfrom simul.common.role.lifecycle import StopFlag\n"
        + ("stop = StopFlag().install()\n" if handled else "stop = False\n")
        + "print('runs', flush=True)\nwhile not stop:\n    time.sleep(0.01)\nprint('ends', flush=True)\n"
    )
    code = FOREGROUND.format(path=f"{tmp_path}:{ROOT}")
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "runs\n"
        command.send_signal(number)
        assert command.stdout.read() == ("ends\n" if handled else ""), "its end closes the pipe"
        assert command.wait(PATIENCE_SEC) == (0 if handled else 130)
