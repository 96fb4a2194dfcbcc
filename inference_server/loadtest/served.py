"""The server that the load test starts, and what it says of itself while the load runs."""

from __future__ import annotations

import time

from simul.common.launch.supervisor.inference_only import ROLE, FrozenServer
from simul.common.protocol.messages import Report
from simul.inference_server.loadtest.cores import pin
from simul.inference_server.loadtest.heard import Heard
from simul.inference_server.loadtest.subject import Subject


class StartedServer(FrozenServer):
    """A server process on cores of its own: `with StartedServer(subject, cores) as server:`."""

    def __init__(self, subject: Subject, cores: tuple[int, ...]) -> None:
        super().__init__(subject.run_dir, subject.checkpoint, subject.config.server.threads)
        self.heard = Heard()
        self.endpoint = subject.run_dir.own_endpoint(subject.config.server.endpoint)
        self._cores = cores

    def start(self) -> None:
        """Start the process, and keep it and all that it starts on its cores."""
        super().start()
        pin(self.group.members[ROLE, 0].child.pid, self._cores)

    def listen(self) -> None:
        """Take in its reports. Raises RoleDied where it has ended."""
        self.receive_reports()
        self.group.check_alive()

    def on_report(self, report: Report) -> None:
        """Keep its figures."""
        self.heard.add(time.perf_counter(), report.metrics)
