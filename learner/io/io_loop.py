"""The learner's I/O thread: receives unrolls or samples, grants credit, publishes weights. All of it runs there.

It never waits for the main loop.
"""

from __future__ import annotations

import time

from simul.common.errors import ProtocolError
from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import TO_LEARNER, LentUnrolls, SampleBatch, ServerHello, Unroll, UnrollMemory
from simul.common.role.reports import REPORT_EVERY_SEC
from simul.common.transport import EndpointMonitor, Poller, RouterSocket
from simul.learner.io.credits import CreditSender
from simul.learner.io.intake import Intake
from simul.learner.io.server_handshake import ServerHandshake
from simul.learner.io.shared_state import SharedState
from simul.learner.io.weight_publisher import MOST_AT_ONCE, WeightPublisher

QUIET_SEC = 0.1  # without a message for so long, everything that servers sent before they ended has arrived
LAST_READS_SEC = 2.0


class IOLoop:
    """Owns both sockets while it runs."""

    def __init__(
        self,
        unroll_socket: RouterSocket,
        shared: SharedState,
        handshake: ServerHandshake,
        publisher: WeightPublisher,
        credits: CreditSender,
        intake: Intake,
    ) -> None:
        self._unrolls = unroll_socket
        self._shared = shared
        self._handshake = handshake
        self._publisher = publisher
        self._credits = credits
        self._intake = intake
        self._sockets = [socket for socket in (unroll_socket, publisher.socket) if socket is not None]
        self._endpoints = EndpointMonitor(*self._sockets)
        self._codec: Codec[TO_LEARNER] = Codec(TO_LEARNER)

    def run(self) -> None:
        """Run until `closing`. What it raises is raised in the main loop."""
        try:
            self._loop()
        except BaseException as error:  # noqa: BLE001  (see above)
            self._shared.fail(error)

    def _loop(self) -> None:
        poller = Poller(self._sockets)
        poller.set_files([self._shared.woken_file()])
        while not self._shared.closing:
            poller.wait(REPORT_EVERY_SEC / 2)
            self._shared.clear_wake_up()
            self._receive()
            with self._shared.changed:
                self._publisher.receive_and_send()
                self._shared.events.extend(self._endpoints.restore_missing(time.monotonic()))
            if gone := self._credits.send_credits(self._intake.waiting_rows):
                with self._shared.changed:
                    self._publisher.forget_connections({self._handshake.connection_of(peer) for peer in gone})
        self._receive_last(poller)

    def _receive_last(self, poller: Poller) -> None:
        """Receive until no message comes. No credit is granted, so that running servers soon stop sending."""
        deadline = time.monotonic() + LAST_READS_SEC
        while poller.wait(QUIET_SEC):
            self._shared.clear_wake_up()
            self._receive()
            with self._shared.changed:
                self._publisher.receive_and_send()
            if time.monotonic() > deadline:  # looked at after a read: a pause of the process loses nothing
                break
        with self._shared.changed:
            self._publisher.receive_and_send()

    def _receive(self) -> None:
        for _ in range(MOST_AT_ONCE):
            if (received := self._unrolls.receive()) is None:
                return
            peer, frames = received
            try:
                message, tensors = self._codec.decode(frames)
            except ProtocolError as error:
                if peer in self._handshake:
                    self._intake.drop_malformed(str(error))
                else:
                    self._refuse(None)
                continue
            if isinstance(message, ServerHello):
                self._admit(peer, message)
            elif peer not in self._handshake:
                self._refuse(message)
            elif isinstance(message, Unroll | LentUnrolls):
                for unroll in message.unrolls if isinstance(message, LentUnrolls) else (message,):
                    self._credits.allocator.count_received(peer, unroll.length)
                    self._intake.take_unroll(peer, unroll, tensors)
            elif isinstance(message, SampleBatch):
                self._credits.allocator.count_received(peer, message.length)
                self._intake.take_samples(message, tensors)
            elif isinstance(message, UnrollMemory):
                self._map_memory(peer, message)
            else:
                self._intake.drop_malformed(f"{type(message).__name__} does not belong on the unroll socket")

    def _admit(self, peer: bytes, hello: ServerHello) -> None:
        self._credits.allocator.remove_server(peer)
        with self._shared.changed:
            if not self._handshake.admit(peer, hello):
                return
            self._publisher.note_served_version(hello.served_version)
        self._credits.allocator.add_server(peer)
        self._credits.resend_all()

    def _refuse(self, message: TO_LEARNER | None) -> None:
        with self._shared.changed:
            self._handshake.refuse(message)

    def _map_memory(self, peer: bytes, memory: UnrollMemory) -> None:
        if problem := self._intake.memories.map_memory_of(peer, memory, self._credits.allocator):
            with self._shared.changed:
                self._shared.events.append(problem)
