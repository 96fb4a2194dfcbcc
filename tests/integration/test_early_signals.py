"""A signal while a command starts: it ends soon, whatever it was doing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from simul.common.protocol.specs import GameSpec
from simul.common.runtime.installation import ROOT
from tests.support.checkpoints import write_small_checkpoint
from tests.support.waiting import PATIENCE_SEC

LIMIT_SEC = 2.0
MOMENTS_SEC = (0.2, 0.4, 0.6, 0.8, 1.0, 1.3, 1.7, 2.2, 3.0, 4.0)
CLEAN = (0, 130, -signal.SIGTERM, -signal.SIGINT)  # the last two: the interpreter was still importing


def start(command: str, tmp_path) -> subprocess.Popen[str]:
    checkpoint = write_small_checkpoint(tmp_path / "checkpoints" / "000000003", 3, spec=GameSpec("gymnasium", 4, 2))
    arguments = {
        "up": ["up", "configs/cartpole.yaml", "--run-dir", str(tmp_path / "run"), "--plain"],
        "serve": ["serve", "--checkpoint", str(checkpoint), "--endpoint", f"ipc://{tmp_path}/s.ipc", "--plain"],
        "eval": ["eval", "--checkpoint", str(checkpoint), "--games", "100000"],
        "play": ["play", "--game", "openspiel"],
    }
    return subprocess.Popen(
        [sys.executable, "-m", "simul.launch.cli", *arguments[command]], cwd=ROOT, text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals end a process at once there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["up", "serve", "eval", "play"])
def test_a_command_ends_within_two_seconds_of_a_signal_at_any_moment_of_its_start(command, number, tmp_path) -> None:
    """Slow: 80 starts. test_eval.py has one moment of the start that takes longest."""
    took = {}
    for moment in MOMENTS_SEC:
        process = start(command, tmp_path / str(moment))
        time.sleep(moment)
        begin = time.monotonic()
        process.send_signal(number)
        said, _ = process.communicate(timeout=PATIENCE_SEC)
        took[moment] = time.monotonic() - begin
        assert process.returncode in CLEAN or "KeyboardInterrupt" in said, said
    assert max(took.values()) < LIMIT_SEC, took
