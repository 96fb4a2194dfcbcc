"""What the server says of itself: to the supervisor twice a second, to Prometheus where that is on."""

from __future__ import annotations

import time
from typing import Any

from common.lifecycle import Reporter
from inference_server.batcher import Batcher
from inference_server.clients import ClientTable
from inference_server.evaluation import Evaluator
from inference_server.policies import PolicyTable
from inference_server.prometheus import Exporter
from inference_server.recorder import Recorder
from inference_server.sessions import SessionTable
from inference_server.statistics import Statistics
from inference_server.swaps import Swaps
from inference_server.watchdog import Watchdog


class Reporting:
    """`facts` never change. `event`: a sentence for the next report."""

    def __init__(
        self,
        statistics: Statistics,
        sessions: SessionTable,
        clients: ClientTable,
        policies: PolicyTable,
        recorder: Recorder,
        batcher: Batcher,
        evaluator: Evaluator,
        swaps: Swaps,
        watchdog: Watchdog,
        reporter: Reporter,
        exporter: Exporter | None,
        facts: dict[str, Any],
    ) -> None:
        self.event = ""
        self._statistics = statistics
        self._sessions = sessions
        self._clients = clients
        self._policies = policies
        self._recorder = recorder
        self._batcher = batcher
        self._evaluator = evaluator
        self._swaps = swaps
        self._watchdog = watchdog
        self._reporter = reporter
        self._exporter = exporter
        self._facts = facts

    def metrics(self) -> dict[str, Any]:
        """Everything that is reported; docs/metrics.md explains each."""
        return {
            **self._facts,
            **self._statistics.as_dict(),
            "sessions": len(self._sessions),
            "sessions_started": self._sessions.started,
            "clients": len(self._clients),
            "waiting": self._batcher.waiting,
            "policies": self._policies.versions(),
            "policy_version": self._policies.learner_version,
            "runners": {policy.name: policy.engine.runner for policy in self._policies},
            "steps": self._recorder.steps(self._sessions.pending_recorded()),
            "unrolls": self._recorder.unrolls(),
            "learner_alive": self._swaps.learner_alive(time.monotonic()),
            "evaluations_waiting": self._evaluator.waiting,
            "ready": self._policies.ready and self._sessions.accepting,
            "health": "ok",
        }

    def send(self, *, state: str | None = None) -> None:
        """Now."""
        self._watchdog.metrics = self.metrics()
        self._reporter.send(self._watchdog.metrics, state=state, event=self.event)
        self.event = ""
        if self._exporter is not None:
            self._exporter.publish(self._watchdog.metrics, self._statistics)

    def turn(self, now: float) -> None:
        """Where it is time."""
        if self._reporter.due(now):
            self.send()

    def close(self) -> None:
        """Stop offering figures to Prometheus."""
        if self._exporter is not None:
            self._exporter.close()
