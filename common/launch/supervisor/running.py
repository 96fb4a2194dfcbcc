"""The processes of a run directory and what they report, for whoever starts some and stays beside them."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from types import TracebackType
from typing import Self

from simul.common.config.run_directory import RunDir
from simul.common.launch.monitoring.report_receiver import ReportReceiver
from simul.common.launch.monitoring.state import RunState
from simul.common.launch.supervisor.process_group import Command, Fleet
from simul.common.launch.supervisor.processes import role_command
from simul.common.protocol.messages import Report
from simul.common.transport import EndpointMonitor, Poller


class RunningRoles:
    """A fleet that reports to us: `with RunningRoles(run_dir) as roles:`; what still runs at the end is killed.

    Whoever stays inside for long calls `take_reports`: a role sends two a second.
    """

    def __init__(self, run_dir: RunDir, command: Command = role_command) -> None:
        self.state = RunState()
        self.fleet = Fleet(run_dir, self.state, command)
        self._run_dir = run_dir

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._reports = opened.enter_context(closing(ReportReceiver(self._run_dir)))
            socket = self._reports.socket
            self._poller, self._endpoints = Poller([socket]), EndpointMonitor(socket)
            opened.callback(self.fleet.kill_all)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End everything now, and hear of nobody any longer."""
        self._opened.close()

    def wait(self, timeout_sec: float) -> bool:
        """True when there are reports; False after `timeout_sec`."""
        return self._poller.wait(timeout_sec)

    def take_reports(self, timeout_sec: float = 0.0) -> list[str]:
        """Take reports in; where there are none, wait for one. Returns what they have to say to people."""
        self.wait(timeout_sec)
        reports, refused = self._reports.receive()
        sentences = [*self._endpoints.restore_missing(time.monotonic()), *refused]
        for report in reports:
            self.received(report)
            sentences += self.state.receive(report, time.monotonic())
        return sentences

    def received(self, report: Report) -> None:
        """Called with each report."""
