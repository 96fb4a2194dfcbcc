"""A cluster of stand-ins: agents as child processes, each with an address, a run directory and keys of its own."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from simul.launch.cluster.agent_process import AgentProcess, agent_command
from tests.support.command import OFTEN, Command

PROGRAM = """
import sys
from simul.launch.cluster.agent import main
stand_in = sys.argv.pop(1)
sys.exit(main(lambda role: [sys.executable, stand_in, role]))
"""


def stand_in_agent(stand_in: str, *arguments: str) -> list[str]:
    """The command line of an agent whose roles are stand-ins."""
    return [sys.executable, "-c", PROGRAM, stand_in, *arguments]


class ChildEngine:
    """Starts the agents of bundle after bundle at the hosts, in turn; a lost one starts on the host after its own.

    Args:
        machines: by address: what to put before the command line of an agent there.
        host: address of this machine.
        stand_in: of the roles; empty: the real ones.
    """

    def __init__(self, machines: Mapping[str, Sequence[str]], host: str = "127.0.0.1", stand_in: str = "") -> None:
        self.host = host
        self._machines, self._hosts, self._stand_in = machines, list(machines), stand_in
        self._opened: dict[int, int] = {}
        self._channels: list[AgentProcess] = []
        self._lock = threading.Lock()

    def open(self, bundle: int, stopped: Callable[[], bool]) -> AgentProcess:
        with self._lock:
            life = self._opened[bundle] = self._opened.get(bundle, -1) + 1
            host = self._hosts[(bundle + life) % len(self._hosts)]
            line = stand_in_agent(self._stand_in) if self._stand_in else agent_command()
            self._channels.append(AgentProcess([*self._machines[host], *line, "--node", host], host, host))
            return self._channels[-1]

    def lacking(self, bundles: Sequence[int]) -> str:
        return ""

    def close(self) -> None:
        for channel in self._channels:
            channel.close()


RUN = f"""
{OFTEN}
import json, sys
from simul.launch.cli import main
from simul.launch.cluster.cluster import Cluster
from simul.launch.supervisor import supervisor
from tests.support.machines import ChildEngine
options = json.loads(sys.argv.pop(1))
class Supervisor(supervisor.Supervisor):
    def __init__(self, config, run_dir, display, **more):
        stand_in = options["stand_in"]
        command = [(lambda role: [sys.executable, stand_in, role])] if stand_in else []
        cluster = Cluster(ChildEngine(**options), config, run_dir)
        super().__init__(config, run_dir, display, *command, **(more | dict(cluster=cluster)))
supervisor.Supervisor = Supervisor
sys.exit(main(sys.argv[1:]))
"""


class AgentRun(Command):
    """`simul up` with the configuration `cartpole` over agents on `machines`; as ChildEngine takes them."""

    def __init__(
        self, root: Path, *more: str, machines: Mapping[str, Sequence[str]], store: str, host: str = "127.0.0.1",
        stand_in: str = "",
    ) -> None:  # fmt: skip
        options = {"machines": {name: list(prefix) for name, prefix in machines.items()}, "host": host,
                   "stand_in": stand_in}  # fmt: skip
        line = ("up", "configs/cartpole.yaml", "--run-dir", str(root), "--plain", "--set", f"store={store}", *more)
        super().__init__([sys.executable, "-c", RUN, json.dumps(options), *line], root)

    def agents(self) -> list[psutil.Process]:
        """Agents on this machine."""
        return [child for child in psutil.Process(self.process.pid).children() if "--node" in child.cmdline()]

    named = Command.process_of
