"""When a role stops, and when at once."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from simul.common.role.lifecycle import STOP_SIGNAL

PROGRAM = """
import time
from simul.common.role.lifecycle import StopFlag
stop = StopFlag().install()
print("installed", flush=True)
while not stop:
    time.sleep(0.01)
print("stopping", flush=True)
time.sleep(0.01)
input()
print("saved", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals end a process at once there")
@pytest.mark.parametrize(
    ("first", "second", "at_once"),
    [
        (signal.SIGTERM, STOP_SIGNAL, False),  # a service manager to everybody, then the supervisor in its order
        (STOP_SIGNAL, signal.SIGTERM, False),
        (STOP_SIGNAL, STOP_SIGNAL, False),
        (signal.SIGTERM, signal.SIGTERM, True),
        (signal.SIGINT, signal.SIGTERM, True),
    ],
)
def test_a_second_signal_means_now_and_the_supervisors_request_is_none(first, second, at_once) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as role:
        assert role.stdout is not None
        assert role.stdout.readline() == "installed\n"
        role.send_signal(first)
        assert role.stdout.readline() == "stopping\n"
        role.send_signal(second)
        if at_once:
            assert role.wait(100) == 130
            return
        output, _ = role.communicate("\n", timeout=100)
        assert (output, role.returncode) == ("saved\n", 0)


STARTING = """
import time
from simul.common.role.lifecycle import StopFlag, Stopped
import os, sys
stop = StopFlag(parent=os.getppid()).install()
try:
    with stop.interrupting():
        print("waiting", flush=True)
        try:
            time.sleep(600)
        except Exception:
            pass
except Stopped:
    print("stopped", bool(stop), flush=True)
"""
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {STARTING!r}])"


@pytest.mark.skipif(sys.platform == "win32", reason="signals end a process at once there")
@pytest.mark.parametrize("killed", ["parent", None])
def test_what_a_role_waits_for_at_its_start_is_interrupted(killed) -> None:
    program = PARENT if killed else STARTING
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        if killed:
            process.kill()
        else:
            process.send_signal(STOP_SIGNAL)
        assert process.stdout.readline() == "stopped True\n"


HANGING = """
import os, time
from simul.common.role.lifecycle import StopFlag
stop = StopFlag(parent=os.getppid(), orphan_sec=0.2).install()
print("working", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such parents there")
def test_a_role_whose_game_does_not_return_ends_soon_after_its_parent() -> None:
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HANGING!r}])"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        process.kill()
        assert process.stdout.read() == "", "its end closes the pipe"
