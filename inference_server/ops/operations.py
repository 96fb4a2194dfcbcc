"""Everything of the loop that is not a decision or a weight: control requests, dead sessions, reports, the watchdog."""

from __future__ import annotations

from dataclasses import dataclass

from simul.inference_server.base.statistics import Statistics
from simul.inference_server.ops.control import Control
from simul.inference_server.ops.reaper import Reaper
from simul.inference_server.ops.reporting import Reporting
from simul.inference_server.ops.watchdog import Watchdog


@dataclass(frozen=True)
class Operations:
    """The parts that watch and administer the server. The loop polls them between two batches."""

    control: Control
    reaper: Reaper
    watchdog: Watchdog
    statistics: Statistics
    reporting: Reporting

    def start(self) -> None:
        """Watch the loop from now on, and report that the server is ready."""
        self.watchdog.start()
        self.reporting.send_report(state="ready")

    def poll(self, now: float) -> None:
        """Answer control requests, end what its client does not end, report when it is time."""
        self.control.poll()
        self.reporting.add_event(self.reaper.reap(now))
        self.reporting.report_when_due(now)

    def stop(self) -> None:
        """Watch no longer, and report that the server has stopped."""
        self.watchdog.stop()
        self.reporting.send_report(state="stopped")

    def close(self) -> None:
        """Close the control socket and the Prometheus endpoint."""
        self.control.close()
        self.reporting.close()
