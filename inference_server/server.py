"""The inference server's main loop: receive > admit > batch > act > reply > record > swap."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from simul.common.runtime.lifecycle import StopFlag
from simul.common.transport import DealerSocket, Poller, RouterSocket
from simul.inference_server.batching.batcher import Batcher, Chunk
from simul.inference_server.engine.actor import Actor
from simul.inference_server.engine.evaluation import Evaluator, Request
from simul.inference_server.frontend.admission_control import Intake
from simul.inference_server.frontend.client_socket import Gateway
from simul.inference_server.frontend.clients import InFlight
from simul.inference_server.ops.control import Control
from simul.inference_server.ops.reaper import Housekeeping
from simul.inference_server.ops.reporting import Reporting
from simul.inference_server.ops.statistics import Statistics
from simul.inference_server.ops.watchdog import Watchdog
from simul.inference_server.policies.weight_updates import Swaps
from simul.inference_server.sessions.table import SessionTable
from simul.inference_server.unrolls.recorder import Recorder

WAIT_SEC = 0.02
LOOK_ASIDE_SEC = 0.001
DRAIN_READS_SEC = 1.0


class Server:
    """Owns the loop; everything it touches is built in `__main__` and passed in."""

    def __init__(
        self,
        *,
        gateway: Gateway,
        intake: Intake,
        in_flight: InFlight,
        sessions: SessionTable,
        batcher: Batcher,
        actor: Actor,
        evaluator: Evaluator,
        recorder: Recorder,
        swaps: Swaps,
        control: Control,
        housekeeping: Housekeeping,
        watchdog: Watchdog,
        statistics: Statistics,
        reporting: Reporting,
    ) -> None:
        self._gateway = gateway
        self._intake = intake
        self._in_flight = in_flight
        self._sessions = sessions
        self._batcher = batcher
        self._actor = actor
        self._evaluator = evaluator
        self._recorder = recorder
        self._swaps = swaps
        self._control = control
        self._housekeeping = housekeeping
        self._watchdog = watchdog
        self._statistics = statistics
        self._reporting = reporting
        self._pause_sec = WAIT_SEC
        self._look_aside_at = 0.0
        self._polled: list[RouterSocket | DealerSocket] = []
        self._poller = Poller()

    def run(self, stop: StopFlag) -> None:
        """Serve until `stop` is set, then answer what waits and report."""
        self._watchdog.start()
        self._reporting.send(state="ready")
        while not stop and not self._control.shutdown:
            if not self.turn(time.monotonic()):
                self._wait()
        self._drain()
        self._watchdog.stop()
        self._reporting.send(state="stopped")

    def close(self) -> None:
        """Close every socket."""
        self._gateway.close()
        self._control.close()
        self._reporting.close()
        self._swaps.close()

    def turn(self, now: float) -> bool:
        """Once around the loop. False when there was nothing to act on, or others are worth waiting for."""
        self._watchdog.beat()
        self._receive(now)
        if now >= self._look_aside_at:
            self._look_aside(now)
        patience = self._batcher.patience(now)
        now = time.monotonic()  # reading took its time
        self._intake.refuse_late(now)
        self._pause_sec = min(patience or WAIT_SEC, self._batcher.next_deadline - now)
        if patience and not self._evaluator.waiting:
            return False
        return self._act(training_open=self._recorder.has_room(now))

    def _look_aside(self, now: float) -> None:
        """Whatever is not a decision: once a millisecond, and after every wait."""
        self._look_aside_at = now + LOOK_ASIDE_SEC
        self._reporting.say(self._swaps.poll(now))
        self._control.poll()
        self._reporting.say(self._gateway.count_connections(now))
        self._reporting.say(self._housekeeping.turn(now))
        self._reporting.turn(now)

    def _act(self, *, training_open: bool) -> bool:
        """One batch of steps or of evaluations. False when there was none."""
        begin = time.monotonic()
        batch: Sequence[Chunk | Request] = []
        if not self._evaluator.has_turn(steps_wait=self._batcher.waiting > 0):
            batch = steps = self._batcher.take(training_open=training_open)
            self._settle(steps)
            self._act_on_steps(steps, begin)
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
        self._reporting.send(state="draining")
        self._sessions.accepting = False
        enough = time.monotonic() + DRAIN_READS_SEC  # whoever goes on flooding shall not keep the server
        self._receive(time.monotonic())
        while not self._gateway.read_all and time.monotonic() < enough:
            self._receive(time.monotonic())
        self._intake.closed = True
        while self._batcher.waiting or self._evaluator.waiting or not self._gateway.read_all:
            self._watchdog.beat()
            self._intake.refuse_late(time.monotonic())
            self._act(training_open=True)
            self._receive(time.monotonic())
            if time.monotonic() > enough and not (self._batcher.waiting or self._evaluator.waiting):
                break
        self._housekeeping.end_all("shutdown")
        self._recorder.settle(math.inf, "shutdown")

    def metrics(self) -> dict[str, Any]:
        """Everything that is reported."""
        return self._reporting.metrics()

    def _receive(self, now: float) -> None:
        stages = self._statistics.stages
        stages.start()
        for client, message, tensors in self._gateway.receive(now):
            stages.lap("receive")
            self._end_departed()  # a newer life may begin its sessions in the message after its HELLO
            self._intake.take(client, message, tensors, now)
            stages.lap("admit")
        stages.lap("receive")
        self._end_departed()

    def _end_departed(self) -> None:
        while self._gateway.departed:
            self._housekeeping.end_sessions(*self._gateway.departed.pop())

    def _wait(self) -> None:
        sockets: list[RouterSocket | DealerSocket] = [
            self._gateway.socket,
            self._control.socket,
            *self._swaps.sockets(),
        ]
        if sockets != self._polled:
            self._polled, self._poller = sockets, Poller(sockets)
        poller = self._poller
        (poller.wait if self._pause_sec >= WAIT_SEC else poller.wait_briefly)(self._pause_sec)
        self._look_aside_at = 0.0
