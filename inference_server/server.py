"""The inference server's main loop: receive > admit > batch > act > record > reply > swap."""

from __future__ import annotations

import time
from collections.abc import Sequence
from logging import Logger
from pathlib import Path
from typing import Any

from common.errors import WeightsError
from common.lifecycle import Reporter, StopFlag
from common.messages import ABORTED
from common.transport import DealerSocket, Poller, RouterSocket
from inference_server.actor import Actor
from inference_server.admission import Admission
from inference_server.batcher import Batcher, Chunk
from inference_server.clients import Client, ClientTable
from inference_server.control import Control
from inference_server.evaluation import Evaluator, Request
from inference_server.gateway import Gateway
from inference_server.intake import Intake
from inference_server.learner_link import LearnerLink
from inference_server.limits import InFlight
from inference_server.policies import LEARNER, PolicyTable
from inference_server.prometheus import Exporter
from inference_server.recorder import Recorder
from inference_server.sessions import SessionTable
from inference_server.statistics import Statistics
from inference_server.watchdog import Watchdog

WAIT_SEC = 0.02
REAP_EVERY_SEC = 1.0
DRAIN_READS_SEC = 1.0
LEARNER_PATIENCE_SEC = 5.0


class Server:
    """Owns the loop; everything it touches is built in `__main__` and passed in."""

    def __init__(
        self,
        *,
        gateway: Gateway,
        clients: ClientTable,
        sessions: SessionTable,
        admission: Admission,
        batcher: Batcher,
        actor: Actor,
        recorder: Recorder,
        policies: PolicyTable,
        link: LearnerLink | None,
        statistics: Statistics,
        intake: Intake,
        evaluator: Evaluator,
        in_flight: InFlight,
        control: Control,
        watchdog: Watchdog,
        reporter: Reporter,
        exporter: Exporter | None,
        log: Logger,
        facts: dict[str, Any],
        idle_timeout_sec: float,
        client_timeout_sec: float,
    ) -> None:
        self._gateway = gateway
        self._clients = clients
        self._sessions = sessions
        self._admission = admission
        self._batcher = batcher
        self._actor = actor
        self._recorder = recorder
        self._policies = policies
        self._link = link
        self._statistics = statistics
        self._intake = intake
        self._evaluator = evaluator
        self._in_flight = in_flight
        self._control = control
        self._watchdog = watchdog
        self._reporter = reporter
        self._exporter = exporter
        self._log = log
        self._facts = facts
        self._idle_timeout_sec = idle_timeout_sec
        self._client_timeout_sec = client_timeout_sec
        self._next_reap = 0.0
        self._event = ""
        self._pause_sec = WAIT_SEC
        self._polled: list[RouterSocket | DealerSocket] = []
        self._poller = Poller()

    def run(self, stop: StopFlag) -> None:
        """Serve until `stop` is set, then answer what waits and report."""
        self._watchdog.start()
        self._report(state="ready")
        while not stop and not self._control.shutdown:
            if not self.turn(time.monotonic()):
                self._wait()
        self._drain()
        self._watchdog.stop()
        self._report(state="stopped")

    def close(self) -> None:
        """Close every socket."""
        self._gateway.socket.close()
        self._control.close()
        if self._exporter is not None:
            self._exporter.close()
        if self._link is not None:
            self._link.close()

    def turn(self, now: float) -> bool:
        """Once around the loop. False when there was nothing to act on, or others are worth waiting for."""
        self._watchdog.beat()
        self._receive(now)
        self._swap(now)
        self._control.poll()
        self._housekeeping(now)
        patience = self._batcher.patience(now)
        self._pause_sec = patience or WAIT_SEC
        if patience and not self._evaluator.waiting:
            return False
        return self._act(training_open=self._recorder.has_room(now))

    def _act(self, *, training_open: bool) -> bool:
        """One batch of steps or of evaluations. False when there was none."""
        begin = time.monotonic()
        batch: Sequence[Chunk | Request] = []
        if not self._evaluator.has_turn(steps_wait=self._batcher.waiting > 0):
            batch = steps = self._batcher.take(training_open=training_open)
            self._settle(steps)
            self._act_on_steps(self._intake.drop_expired(steps, begin), begin)
        if not batch and self._evaluator.waiting:
            batch = self._evaluator.act()
            self._settle(batch)
        if batch:
            self._in_flight.last_batch_sec = time.monotonic() - begin
        return bool(batch)

    def _act_on_steps(self, batch: list[Chunk], now: float) -> None:
        if batch:
            taken_at = time.monotonic()
            for chunk in batch:
                self._statistics.queue_wait_us.add((taken_at - chunk.arrived_at) * 1e6, len(chunk))
            self._statistics.stages.start()
            forward_sec = self._actor.act(batch, now)
            self._batcher.replied(batch, forward_sec, time.monotonic())

    def _settle(self, batch: Sequence[Chunk | Request]) -> None:
        for portion in batch:
            self._in_flight.remove(portion.client, len(portion))

    def _drain(self) -> None:
        """Answer everything that has arrived; no session begins any more, and what comes later is refused."""
        self._report(state="draining")
        self._sessions.accepting = False
        enough = time.monotonic() + DRAIN_READS_SEC  # whoever goes on flooding shall not keep the server
        self._receive(time.monotonic())
        while not self._gateway.read_all and time.monotonic() < enough:
            self._receive(time.monotonic())
        self._intake.closed = True
        while self._batcher.waiting or self._evaluator.waiting or not self._gateway.read_all:
            self._watchdog.beat()
            self._act(training_open=True)
            self._receive(time.monotonic())
            if time.monotonic() > enough and not (self._batcher.waiting or self._evaluator.waiting):
                break
        for client in self._clients:
            self._end_sessions(client, "shutdown", time.monotonic())

    def _report(self, *, state: str | None = None) -> None:
        self._watchdog.metrics = self.metrics()
        self._reporter.send(self._watchdog.metrics, state=state, event=self._event)
        self._event = ""

    def metrics(self) -> dict[str, Any]:
        """Everything that is reported."""
        return {
            **self._facts,
            **self._statistics.as_dict(),
            "sessions": len(self._sessions),
            "sessions_started": self._sessions.started,
            "clients": len(self._clients),
            "waiting": self._batcher.waiting,
            "policies": self._policies.versions(),
            "policy_version": self._policies.learner_version,
            "steps": self._recorder.steps(self._sessions.pending_recorded()),
            "learner_alive": self._link is not None and self._link.alive(time.monotonic()),
            "evaluations_waiting": self._evaluator.waiting,
            "ready": self._policies.ready,
            "health": "ok",
        }

    def _receive(self, now: float) -> None:
        stages = self._statistics.stages
        stages.start()
        for client, message, tensors in self._gateway.receive(now):
            stages.lap("receive")
            self._intake.take(client, message, tensors, now)
            stages.lap("admit")
        stages.lap("receive")
        while self._gateway.departed:
            self._end_sessions(*self._gateway.departed.pop(), now)

    def _swap(self, now: float) -> None:
        if self._link is None:
            return
        for weights, data in self._link.poll(now, self._policies.learner_version):
            if weights.policy == LEARNER:
                self._statistics.offered_version = weights.policy_version
            try:
                self._policies.install(weights, data)
            except WeightsError as error:
                self._statistics.weights_refused += 1
                self._event = f"weights {weights.policy} version {weights.policy_version} refused: {error}"
                self._log.warning(self._event)
                self._link.acknowledge(weights, str(error))
            else:
                self._statistics.swaps += 1
                self._link.acknowledge(weights)

    def _housekeeping(self, now: float) -> None:
        if now >= self._next_reap:
            self._next_reap = now + REAP_EVERY_SEC
            for session in self._sessions.idle(now - self._idle_timeout_sec):
                self._admission.end(session, ABORTED, None, "idle", now)
            for client in self._clients.silent(now - self._client_timeout_sec):
                self._clients.forget(client)
                self._end_sessions(client, "client_lost", now)
            self._recorder.settle(now)
            self._policies.remove_retired(self._sessions.bound_to, now)
        if self._reporter.due(now):
            self._report()
            if self._exporter is not None:
                self._exporter.publish(self._watchdog.metrics, self._statistics)

    def _end_sessions(self, client: Client, cause: str, now: float) -> None:
        for session in self._sessions.sessions_of(client):
            self._admission.end(session, ABORTED, None, cause, now)

    def _wait(self) -> None:
        sockets = [self._gateway.socket, self._control.socket, *(self._link.sockets() if self._link else ())]
        if sockets != self._polled:
            self._polled, self._poller = sockets, Poller(sockets)
        poller = self._poller
        (poller.wait if self._pause_sec >= WAIT_SEC else poller.wait_briefly)(self._pause_sec)


def find_weights(link: LearnerLink, policies: PolicyTable, checkpoints: Path, stop: StopFlag, log: Logger) -> None:
    """Take the living learner's weights; else, after a while, the newest checkpoint's. Waits until there are any."""
    patience = time.monotonic() + LEARNER_PATIENCE_SEC
    while not policies.ready and not stop:
        for weights, data in link.poll(time.monotonic(), policies.learner_version):
            try:
                policies.install(weights, data)
                link.acknowledge(weights)
            except WeightsError as error:
                log.warning("weights %s version %d refused: %s", weights.policy, weights.policy_version, error)
                link.acknowledge(weights, str(error))
        if not policies.ready and time.monotonic() > patience:
            patience = float("inf")
            for note in policies.install_newest(checkpoints):
                log.warning(note)
        Poller(link.sockets()).wait(0.05)
