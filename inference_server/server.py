"""The inference server's main loop: receive > admit > batch > act > reply > record > swap."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from simul.common.role.lifecycle import StopFlag
from simul.common.transport import DealerSocket, Poller, RouterSocket
from simul.inference_server.batching.batcher import Batcher, Chunk
from simul.inference_server.frontend.client_socket import ClientSocket
from simul.inference_server.ops.operations import Operations
from simul.inference_server.policies.weight_updates import WeightUpdates
from simul.inference_server.serving.actor import Actor
from simul.inference_server.serving.admission_control import AdmissionControl
from simul.inference_server.serving.evaluation import EvaluateRequest, Evaluator
from simul.inference_server.sessions.session_close import SessionCloser
from simul.inference_server.unrolls.recorder import Recorder

WAIT_SEC = 0.02
LOOK_ASIDE_SEC = 0.001
DRAIN_READS_SEC = 1.0


class InferenceServer:
    """Owns the loop; everything it touches is built in `build.py` and passed in."""

    def __init__(
        self,
        *,
        client_socket: ClientSocket,
        admission_control: AdmissionControl,
        batcher: Batcher,
        actor: Actor,
        evaluator: Evaluator,
        recorder: Recorder,
        weight_updates: WeightUpdates,
        session_closer: SessionCloser,
        operations: Operations,
    ) -> None:
        self._client_socket = client_socket
        self._admission_control = admission_control
        self._batcher = batcher
        self._actor = actor
        self._evaluator = evaluator
        self._recorder = recorder
        self._weight_updates = weight_updates
        self._session_closer = session_closer
        self._operations = operations
        self._statistics = operations.statistics
        self._pause_sec = WAIT_SEC
        self._fills_batch = False  # the next wait is for a fuller batch
        self._look_aside_at = 0.0
        self._polled: list[RouterSocket | DealerSocket] = []
        self._poller = Poller()

    def run(self, stop: StopFlag) -> None:
        """Serve until `stop` is set, then answer what waits and report."""
        self._operations.start()
        self._statistics.stages.start()
        while not stop and not self._operations.control.shutdown:
            if not self.turn(time.monotonic()):
                self._wait()
        self._drain()
        self._operations.stop()

    def close(self) -> None:
        """Close every socket."""
        self._client_socket.close()
        self._operations.close()
        self._weight_updates.close()

    def turn(self, now: float) -> bool:
        """One turn of the loop. False when there was nothing to act on, or when waiting for more rows pays."""
        self._operations.watchdog.beat()
        self._receive(now)
        if now >= self._look_aside_at:
            self._look_aside(now)
        wait_sec = self._batcher.wait_sec(now)
        now = time.monotonic()  # reading took its time
        self._admission_control.refuse_expired(now)
        self._pause_sec = min(wait_sec or WAIT_SEC, self._batcher.next_deadline - now)
        self._fills_batch = wait_sec > 0
        if wait_sec and not self._evaluator.waiting:
            return False
        return self._act(training_open=self._recorder.has_room(now))

    def _look_aside(self, now: float) -> None:
        """Everything that is not a decision, weights among it: once a millisecond, and after every wait."""
        self._look_aside_at = now + LOOK_ASIDE_SEC
        reporting, stages = self._operations.reporting, self._statistics.stages
        reporting.add_event(self._weight_updates.poll(now))
        stages.lap("weights")
        reporting.add_event(self._client_socket.count_connections(now))
        self._operations.poll(now)
        stages.lap("report")

    def _act(self, *, training_open: bool) -> bool:
        """Act on one batch of steps or of evaluations: forward, reply, record. False when there was none."""
        begin = time.monotonic()
        batch: Sequence[Chunk | EvaluateRequest] = []
        if not self._evaluator.has_turn(steps_wait=self._batcher.waiting > 0):
            batch = steps = self._batcher.take_batch(training_open=training_open)
            self._admission_control.settle(steps)
            self._act_on_steps(steps, begin)
        if not batch and self._evaluator.waiting:
            batch = self._evaluator.act()
            self._admission_control.settle(batch)
            self._statistics.stages.lap("evaluate")
        if batch:
            self._admission_control.last_batch_took(time.monotonic() - begin)
        return bool(batch)

    def _act_on_steps(self, batch: list[Chunk], now: float) -> None:
        if batch:
            taken_at = time.monotonic()
            for chunk in batch:
                self._statistics.queue_wait_us.add((taken_at - chunk.arrived_at) * 1e6, len(chunk))
            self._statistics.stages.lap("batch")
            forward_sec = self._actor.act(batch, now)
            self._batcher.batch_answered(batch, forward_sec, time.monotonic())

    def _drain(self) -> None:
        """Answer everything that has arrived; no session begins any more, and later messages are refused."""
        self._operations.reporting.send_report(state="draining")
        self._admission_control.open_no_sessions()
        enough = time.monotonic() + DRAIN_READS_SEC  # a client that floods must not keep the server from its end
        self._receive(time.monotonic())
        while not self._client_socket.read_all and time.monotonic() < enough:
            self._operations.watchdog.beat()
            self._receive(time.monotonic())
        self._admission_control.closed = True
        while self._batcher.waiting or self._evaluator.waiting or not self._client_socket.read_all:
            self._operations.watchdog.beat()
            self._admission_control.refuse_expired(time.monotonic())
            self._act(training_open=True)
            self._receive(time.monotonic())
            if time.monotonic() > enough and not (self._batcher.waiting or self._evaluator.waiting):
                break
        self._operations.reaper.close_all_sessions("shutdown")
        self._recorder.drop_unsendable(math.inf, "shutdown")

    def metrics(self) -> dict[str, Any]:
        """Everything that is reported."""
        return self._operations.reporting.metrics()

    def _receive(self, now: float) -> None:
        stages = self._statistics.stages
        stages.lap("batch")
        for client, message, tensors in self._client_socket.receive(now):
            stages.lap("receive")
            self._statistics.messages += 1
            self._close_departed()  # a newer run may open its sessions in the message after its HELLO
            self._admission_control.admit_message(client, message, tensors, now)
            stages.lap("admit")
        stages.lap("receive")
        self._close_departed()

    def _close_departed(self) -> None:
        while self._client_socket.departed:
            self._session_closer.close_sessions_of(*self._client_socket.departed.pop())

    def _wait(self) -> None:
        self._recorder.flush()
        sockets: list[RouterSocket | DealerSocket] = [
            self._client_socket.socket,
            self._operations.control.socket,
            *self._weight_updates.sockets(),
        ]
        if sockets != self._polled:
            self._polled, self._poller = sockets, Poller(sockets)
        poller = self._poller
        (poller.wait if self._pause_sec >= WAIT_SEC else poller.wait_briefly)(self._pause_sec)
        held_back = "batch_wait" if self._fills_batch else "learner_full"
        self._statistics.stages.lap(held_back if self._batcher.waiting else "wait")
        self._look_aside_at = 0.0
