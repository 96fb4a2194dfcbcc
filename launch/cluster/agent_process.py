"""An agent as a child process, spoken to through its standard input and output."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import threading
from collections.abc import Sequence

from simul.launch.cluster.links import ChannelLostError
from simul.launch.processes.role_process import role_environment

AGENT = "simul.launch.cluster.agent"
CLOSE_SEC = 5.0


def agent_command(*arguments: str) -> list[str]:
    """The command line of an agent on the machine where it runs."""
    return [sys.executable, "-P", "-m", AGENT, *arguments]


class AgentProcess:
    """A channel to an agent that runs on this machine, in a session of its own, or wherever `line` starts it.

    Where this process ends, the agent finds its input closed: its roles drain, save and exit.
    """

    def __init__(self, line: Sequence[str], node: str, host: str) -> None:
        self.node, self.host = node, host
        self._process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=role_environment(1), start_new_session=True
        )
        self._sending = threading.Lock()
        self._closing = threading.Lock()

    def send(self, data: bytes) -> None:
        """Send; the agent reads at once. Raises ChannelLostError."""
        assert self._process.stdin is not None
        try:
            with self._sending:
                self._process.stdin.write(data)
                self._process.stdin.flush()
        except (OSError, ValueError):
            raise ChannelLostError("its agent has ended") from None

    def receive(self, timeout_sec: float) -> bytes:
        """What has come; empty: nothing within `timeout_sec`. Raises ChannelLostError."""
        assert self._process.stdout is not None
        try:
            if not select.select([self._process.stdout], [], [], timeout_sec)[0]:
                return b""
            data = os.read(self._process.stdout.fileno(), 1 << 18)
        except (OSError, ValueError):
            data = b""
        if not data:
            raise ChannelLostError("its agent has ended")
        return data

    def close(self) -> None:
        """End its input; an agent that was not asked to leave lets its roles drain and save, without this process."""
        with self._closing, contextlib.suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_SEC)
