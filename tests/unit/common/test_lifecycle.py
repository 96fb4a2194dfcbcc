"""When a role stops, and when at once."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from common.lifecycle import ASK

PROGRAM = """
import time
from common.lifecycle import StopFlag
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
        (signal.SIGTERM, ASK, False),  # a service manager to everybody, then the supervisor in its order
        (ASK, signal.SIGTERM, False),
        (ASK, ASK, False),
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
