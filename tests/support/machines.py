"""A cluster of stand-ins: agents as child processes, each with an address, a run directory and keys of its own."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from simul.common.launch.cluster.agent_process import AgentProcess, agent_command
from simul.common.launch.cluster.links import ChannelLostError

PROGRAM = """
import sys
from simul.common.launch.cluster.agent import main
stand_in = sys.argv.pop(1)
sys.exit(main(lambda role: [sys.executable, stand_in, role]))
"""


def stand_in_agent(stand_in: str, *arguments: str) -> list[str]:
    """The command line of an agent whose roles are stand-ins."""
    return [sys.executable, "-c", PROGRAM, stand_in, *arguments]


class ChildEngine:
    """Starts the agents of bundle after bundle at `hosts`, in turn; a lost one starts on the host after its own.

    Args:
        line: command line of an agent on a host, with its arguments.
    """

    def __init__(
        self, hosts: Sequence[str], line: Callable[..., list[str]] = agent_command, host: str = "127.0.0.1",
        prefix: Callable[[str], list[str]] = lambda host: [],
    ) -> None:  # fmt: skip
        self.host = host
        self.channels: list[AgentProcess] = []
        self.gone: set[str] = set()  # hosts where nothing starts any more
        self._hosts, self._line, self._prefix = list(hosts), line, prefix
        self._opened: dict[int, int] = {}
        self._lock = threading.Lock()

    def open(self, bundle: int, stopped: Callable[[], bool]) -> AgentProcess:
        with self._lock:
            at = bundle + self._opened.get(bundle, 0)
            while self._hosts[at % len(self._hosts)] in self.gone:
                at += 1
                if at > 100:
                    raise ChannelLostError("there is no host left")
            self._opened[bundle] = at + 1 - bundle
            host = self._hosts[at % len(self._hosts)]
            channel = AgentProcess([*self._prefix(host), *self._line("--node", host)], host, host)
            self.channels.append(channel)
            return channel

    def close(self) -> None:
        for channel in self.channels:
            channel.close()


def kill_machine(channel: AgentProcess) -> None:
    """As a machine that loses its power: the agent and its roles are gone at once."""
    process: subprocess.Popen[bytes] = channel._process
    import psutil

    for child in psutil.Process(process.pid).children(recursive=True):
        child.kill()
    process.kill()
