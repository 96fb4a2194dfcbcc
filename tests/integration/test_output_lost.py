"""A run whose output cannot be written goes on; one whose terminal is gone stops with a save and a summary."""

from __future__ import annotations

import os
import pty
import sys

import pytest

from tests.support.stand_ins import PROGRAM

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and terminals of POSIX")
OFTEN = "from simul.launch.monitoring.view import display; display.PLAIN_EVERY_SEC = 0.1\n"
# A terminal of its own, which tells it with SIGHUP when it closes. The tests may run under `nohup`, the run does not.
CONTROLLED = (
    "import fcntl, signal, termios; fcntl.ioctl(1, termios.TIOCSCTTY, 0); "
    "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
)


def _goes_on(run) -> None:
    """Decisions grow after output failed."""
    run.wait_until_training()
    before = run.status()["server"]["decisions"]
    run.wait_for(lambda status: status["server"]["decisions"] > before + 200, "it goes on")


def _stopped_cleanly(run, code: int) -> None:
    log = (run.run_dir.logs / "simul-supervisor.log").read_text()
    assert code == 0, log
    assert run.printed() == "", "stderr"
    assert run.summary()["decisions"] > 0
    assert (run.run_dir.checkpoints / "version").exists(), "the learner has saved"


@pytest.mark.slow  # .ci/long runs it
def test_a_reader_that_has_enough_stops_nothing(up):
    """`simul up | head`"""
    reading, writing = os.pipe()
    run = up(stdout=writing, program=OFTEN + PROGRAM)
    os.close(writing)
    assert os.read(reading, 1)
    os.close(reading)
    _goes_on(run)
    _stopped_cleanly(run, run.finish()[0])


def test_a_terminal_that_is_gone_ends_the_run_with_a_save_and_a_summary(up):
    terminal, inside = pty.openpty()
    run = up(stdout=inside, program=OFTEN + CONTROLLED + PROGRAM)
    os.close(inside)
    run.wait_until_training()
    os.close(terminal)
    _stopped_cleanly(run, run.result()[0])
