"""Reports of the server: to the supervisor twice a second, to Prometheus if `server.prometheus_port` is set."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simul.common.errors import ERR_CAPACITY
from simul.common.role.reports import Reporter
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.batching.batcher import Batcher
from simul.inference_server.ops.prometheus import Exporter
from simul.inference_server.ops.watchdog import Watchdog
from simul.inference_server.policies.table import PolicyTable
from simul.inference_server.policies.weight_updates import WeightUpdates
from simul.inference_server.serving.evaluation import Evaluator
from simul.inference_server.sessions.clients import ClientTable
from simul.inference_server.sessions.table import SessionTable
from simul.inference_server.unrolls.recorder import Recorder
from simul.inference_server.unrolls.sample_relay import SampleRelay

COMPLAIN_EVERY_SEC = 60.0
MOST_EVENTS = 3  # of half a second; the newest ones


class _CounterAlert:
    """A sentence about a counter that went up, at most once a minute."""

    def __init__(self, count: Callable[[], int], sentence: Callable[[int], str]) -> None:
        self._count = count
        self._sentence = sentence
        self._told, self._next = 0, 0.0

    def poll(self, now: float) -> str:
        """The sentence if the counter rose and a minute has passed, else an empty string."""
        count = self._count()
        if count == self._told or now < self._next:
            return ""
        new, self._told, self._next = count - self._told, count, now + COMPLAIN_EVERY_SEC
        return self._sentence(new)


@dataclass(frozen=True)
class ServerMetrics:
    """The parts that have something to report. `facts`: metrics that never change."""

    statistics: Statistics
    sessions: SessionTable
    clients: ClientTable
    policies: PolicyTable
    recorder: Recorder
    sample_relay: SampleRelay
    batcher: Batcher
    evaluator: Evaluator
    weight_updates: WeightUpdates
    facts: dict[str, Any]

    def collect(self) -> dict[str, Any]:
        """Everything that is reported; docs/metrics.md explains each."""
        return {
            **self.facts,
            **self.statistics.as_dict(),
            "sessions": len(self.sessions),
            "sessions_started": self.sessions.started,
            "clients": len(self.clients),
            "waiting": self.batcher.waiting,
            "policies": self.policies.versions(),
            "policy_version": self.policies.learner_version,
            "runners": {policy.name: policy.engine.runner for policy in self.policies},
            "steps": self.recorder.steps(self.sessions.count_pending_recorded()),
            "unrolls": self.recorder.unrolls(),
            "samples": self.sample_relay.account(),
            "learner_alive": self.weight_updates.learner_alive(time.monotonic()),
            "evaluations_waiting": self.evaluator.waiting,
            "ready": self.policies.ready and self.sessions.accepting,
            "health": "ok",
        }


class Reporting:
    """Sends the metrics of all parts, and sentences about what needs attention."""

    def __init__(
        self, metrics: ServerMetrics, watchdog: Watchdog, reporter: Reporter, exporter: Exporter | None
    ) -> None:
        statistics, sessions = metrics.statistics, metrics.sessions
        self._events: deque[str] = deque(maxlen=MOST_EVENTS)
        self._alerts = (
            _CounterAlert(
                lambda: statistics.forward_failures,
                lambda rows: f"the forward failed for {rows:,} rows: {statistics.forward_failure}",
            ),
            _CounterAlert(
                lambda: statistics.rows_errored[ERR_CAPACITY],
                lambda rows: f"{rows:,} games found no session free; the last was refused to {sessions.refusal}",
            ),
            _CounterAlert(
                lambda: statistics.connections["not_accepted"],
                lambda times: f"the proxy let new connections wait {times:,} times: too many are open, or come at once",
            ),
            _CounterAlert(
                lambda: statistics.connections["failed"],
                lambda times: (
                    f"{times:,} {'connection was' if times == 1 else 'connections were'} refused in the handshake: no "
                    "CURVE key that the server's keys allow, keys on one side only, or silence"
                ),
            ),
            _CounterAlert(
                lambda: statistics.faults,
                lambda faults: f"{faults:,} messages met a fault of the server's own: {statistics.fault}",
            ),
        )
        self._metrics = metrics
        self._watchdog = watchdog
        self._reporter = reporter
        self._exporter = exporter

    def metrics(self) -> dict[str, Any]:
        """Everything that is reported."""
        return self._metrics.collect()

    def add_event(self, event: str) -> None:
        """Add a sentence to the next report; an empty one is ignored."""
        if event:
            self._events.append(event)

    def send_report(self, *, state: str | None = None) -> None:
        """Send a report now."""
        self.add_event(self._watchdog.take_recovery())
        self._watchdog.metrics = self.metrics()
        self._reporter.send(self._watchdog.metrics, state=state, event="; ".join(self._events))
        self._events.clear()
        if self._exporter is not None:
            self._exporter.publish(self._watchdog.metrics, self._metrics.statistics)

    def report_when_due(self, now: float) -> None:
        """Send a report if one is due."""
        if self._reporter.due(now):
            for alert in self._alerts:
                self.add_event(alert.poll(now))
            self.send_report()

    def close(self) -> None:
        """Stop offering figures to Prometheus."""
        if self._exporter is not None:
            self._exporter.close()
