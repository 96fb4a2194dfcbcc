"""The server under load: one started here or one that runs already, and the figures it reports meanwhile."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol

from simul.common.client.client import InferenceClient
from simul.common.protocol.messages import Report
from simul.common.protocol.specs import GameSpec
from simul.common.transport import ClientKeys
from simul.launch.loadtest.cores import pin
from simul.launch.loadtest.subject import Subject
from simul.launch.supervisor.inference_only import ROLE, FrozenServer

Metrics = dict[str, Any]  # cumulative since the server's start: `decisions`, `batches`, ...; see docs/metrics.md


class ServerReports:
    """Reports in order of arrival; times are of time.perf_counter()."""

    def __init__(self) -> None:
        self._reports: list[tuple[float, Metrics]] = []

    def add(self, at: float, metrics: Metrics) -> None:
        """Keep a report."""
        self._reports.append((at, metrics))

    @property
    def last(self) -> Metrics:
        """The newest figures; {} before the first report."""
        return self._reports[-1][1] if self._reports else {}

    def between(self, begin: float, end: float) -> tuple[Metrics, Metrics] | None:
        """First and last report of a span; None where it has fewer than two."""
        inside = [metrics for at, metrics in self._reports if begin <= at <= end]
        return (inside[0], inside[-1]) if len(inside) > 1 else None


def mean_batch_between(first: Metrics, last: Metrics) -> float | None:
    """Mean rows a forward between two reports; None where nothing was served."""
    batches = last["batches"] - first["batches"]
    return round((last["decisions"] - first["decisions"]) / batches, 1) if batches > 0 else None


def histogram_between(first: Metrics, last: Metrics) -> dict[str, int] | None:
    """Batches by size bucket between two reports; None where the server does not report them."""
    if "batch_histogram" not in last:
        return None
    before: Mapping[str, int] = first["batch_histogram"]
    counts: Mapping[str, int] = last["batch_histogram"]
    return {size: count - before.get(size, 0) for size, count in counts.items() if count > before.get(size, 0)}


def stages_between(first: Metrics, last: Metrics) -> dict[str, float] | None:
    """Microseconds an action by stage between two reports; None where nothing was served or reported."""
    served = last["decisions"] - first["decisions"]
    if not served or "stage_us" not in last:
        return None
    before: Mapping[str, float] = first["stage_us"]  # means since the server's start
    return {
        stage: round((mean * last["decisions"] - before.get(stage, 0.0) * first["decisions"]) / served, 2)
        for stage, mean in last["stage_us"].items()
    }


ASK_EVERY_SEC = 0.1


class MeasuredServer(Protocol):
    """The server under load."""

    server_reports: ServerReports

    def update_reports(self) -> None:
        """Receive its reports; called often."""


class RunningServer:
    """Reads STATUS of a server that runs already: `with RunningServer(endpoint, spec, keys, 5.0) as server:`."""

    def __init__(self, endpoint: str, spec: GameSpec, keys: ClientKeys | None, connect_sec: float) -> None:
        self.endpoint = endpoint
        self.server_reports = ServerReports()
        self._client = InferenceClient(endpoint, name="loadtest-status", spec=spec, keys=keys)
        self._connect_sec = connect_sec
        self._asked_at = -1e9

    def __enter__(self) -> RunningServer:
        """Connect. Raises InferenceError where the server refuses the client."""
        try:
            self._client.connect(self._connect_sec)
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def update_reports(self) -> None:
        """Receive its figures and ask for the next. Raises InferenceError where it refuses the client."""
        now = time.perf_counter()
        figures = self._client.poll().figures
        if figures is not None:
            self.server_reports.add(now, {"decisions": figures.decisions, "batches": figures.batches})
        if now - self._asked_at >= ASK_EVERY_SEC:
            self._asked_at = now
            self._client.ask_status()


class StartedServer(FrozenServer):
    """A server process pinned to `cores`: `with StartedServer(subject, cores) as server:`."""

    def __init__(self, subject: Subject, cores: tuple[int, ...]) -> None:
        super().__init__(subject.run_dir, subject.checkpoint, subject.config.server.threads)
        self.server_reports = ServerReports()
        self.endpoint = subject.run_dir.own_endpoint(subject.config.server.endpoint)
        self._cores = cores

    def start(self) -> None:
        """Start the process, pinned to its cores; the processes it starts inherit them."""
        super().start()
        pin(self.group.members[ROLE, 0].child.pid, self._cores)

    def update_reports(self) -> None:
        """Receive its reports. Raises RoleDied where it has ended."""
        self.receive_reports()
        self.group.check_alive()

    def on_report(self, report: Report) -> None:
        """Keep its figures."""
        self.server_reports.add(time.perf_counter(), report.metrics)
