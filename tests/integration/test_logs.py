"""`simul logs` as a person runs it: a process of its own, on files that change meanwhile."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest

LINE = "2026-11-22 20:00:0{0},000 simul-{1} INFO line {0}\n"


@pytest.fixture
def run(tmp_path):
    logs = tmp_path / "run" / "logs"
    logs.mkdir(parents=True)
    (logs / "simul-learner-0.log").write_text(LINE.format(2, "learner-0"))
    (logs / "simul-worker-0.log").write_text(LINE.format(1, "worker-0"))
    return logs


@pytest.fixture
def simul(tmp_path):
    """A function that starts `simul ...` in `tmp_path`; what still runs at the end is killed."""
    with ExitStack() as started:

        def start(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, "-m", "simul.launch.cli", *arguments],
                cwd=tmp_path, text=True, stdout=stdout, stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.getcwd()},
            )  # fmt: skip
            started.enter_context(process)
            started.callback(process.kill)
            return process

        yield start


def test_followed_lines_come_from_new_files_and_emptied_ones_until_ctrl_c(run, simul):
    process = simul("logs", str(run.parent), "--follow")
    assert [process.stdout.readline().split()[-1] for _ in range(2)] == ["1", "2"]
    (run / "simul-worker-1.log").write_text(LINE.format(3, "worker-1"))
    assert process.stdout.readline().split()[2:] == ["worker-1", "INFO", "line", "3"]
    (run / "simul-learner-0.log").write_text(LINE.format(4, "learner-0"))
    assert process.stdout.readline().split()[2:] == ["learner-0", "INFO", "line", "4"]
    (run / "simul-worker-1.log").rename(run / "simul-worker-1.log.1")
    (run / "simul-worker-1.log").write_text(LINE.format(5, "worker-1"))
    assert process.stdout.readline().split()[2:] == ["worker-1", "INFO", "line", "5"]
    process.send_signal(signal.SIGINT)
    assert process.communicate() == ("", "")
    assert process.returncode == 0


def test_only_a_terminal_gets_colours(run, simul):
    ours, theirs = pty.openpty()
    process = simul("logs", "run", stdout=theirs)
    _, complaints = process.communicate()
    os.close(theirs)
    shown = os.read(ours, 65_536).decode()
    os.close(ours)
    assert complaints == ""
    assert "\x1b[32mworker-0" in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "No run is active below runs/. Name a run directory with --run-dir, or start one: `simul up`."),
        (("elsewhere",), "There is no run in {0}/elsewhere (no folder logs). Start one with `simul up`."),
        (("run", "--role", "lerner"), "--role lerner: expected one of learner, inference, worker, supervisor"),
    ],
)
def test_a_missing_run_and_a_wrong_role_are_one_sentence(run, simul, tmp_path, arguments, sentence):
    process = simul("logs", *arguments)
    printed, complaint = process.communicate()
    assert (process.returncode, printed) == (2, "")
    assert complaint.startswith(f"simul: {sentence.format(tmp_path)}")
