"""The learner's I/O thread: receives unrolls or samples, grants credit, publishes weights.

It never waits for the main loop.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from simul.common.errors import ProtocolError
from simul.common.protocol.codec import Codec, Tensors
from simul.common.protocol.messages import TO_LEARNER, SampleBatch, ServerHello, Unroll, UnrollMemory
from simul.common.role.reports import REPORT_EVERY_SEC
from simul.common.transport import EndpointMonitor, Poller, RouterSocket
from simul.learner.io.credits import CreditAllocator, CreditSender
from simul.learner.io.samples import ReceivedSamples, RejectedSamples, SampleChecker
from simul.learner.io.server_handshake import ServerHandshake
from simul.learner.io.unroll_memory import UnrollMemories
from simul.learner.io.unrolls import ReceivedUnroll, RejectedUnroll, UnrollChecker
from simul.learner.io.weight_publisher import MOST_AT_ONCE, WeightPublisher

QUIET_SEC = 0.1  # without a message for so long, everything that servers sent before they ended has arrived
LAST_READS_SEC = 2.0
FINISH_SEC = 60.0


@dataclass
class UnrollCounts:
    """Unrolls of admitted servers since process start. received = taken + dropped + waiting."""

    received: int = 0
    taken: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    dropped_steps: int = 0  # where the length is known


@dataclass
class SampleCounts:
    """Samples of admitted servers since process start. received = stored + dropped + waiting."""

    received: int = 0
    stored: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


class UnrollReceiver:
    """Owns both sockets from `start()` to `close()`. The main loop calls the public methods.

    With `sample_checker` it takes samples (`take_samples`) and drops unrolls; else the reverse. `weights_socket` None:
    another rank publishes the weights.
    """

    def __init__(
        self,
        unroll_socket: RouterSocket,
        weights_socket: RouterSocket | None,
        checker: UnrollChecker,
        credits: CreditAllocator,
        handshake: ServerHandshake,
        sample_checker: SampleChecker | None = None,
    ) -> None:
        self.counts = UnrollCounts()
        self.samples = SampleCounts()
        self.publisher = WeightPublisher(weights_socket, handshake)
        self._handshake = handshake
        self._unrolls = unroll_socket
        self._checker = checker
        self._sample_checker = sample_checker
        self._credits = credits
        self._memories = UnrollMemories(checker.layout)
        self._credit_sender = CreditSender(unroll_socket, credits, self._memories)
        self._sockets = [socket for socket in (unroll_socket, weights_socket) if socket is not None]
        self._endpoints = EndpointMonitor(*self._sockets)
        self._codec: Codec[TO_LEARNER] = Codec(TO_LEARNER)
        self._queue: deque[ReceivedUnroll] = deque()
        self._sample_queue: deque[ReceivedSamples] = deque()
        self._waiting_steps = self._waiting_samples = 0
        self._events: deque[str] = deque(maxlen=100)
        self._changed = threading.Condition()
        self._wake_up, self._woken = socket.socketpair()
        for end in (self._wake_up, self._woken):
            end.setblocking(False)
        self._closing = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="simul-learner-receiver", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def finish(self) -> None:
        """Stop the thread, after it has sent what was published and received what servers have sent."""
        if self._thread.is_alive():
            self._closing = True
            self._wake()
            self._thread.join(FINISH_SEC)

    def close(self) -> None:
        """Finish, and close everything."""
        self.finish()
        for end in (self._wake_up, self._woken):
            end.close()
        self.publisher.close()

    def take_batch(self, steps: int, timeout_sec: float, version: int, max_lag: int) -> list[ReceivedUnroll]:
        """Whole unrolls of at least `steps` steps together, oldest first; [] after `timeout_sec`.

        Unrolls whose oldest step is more than `max_lag` versions behind `version` are dropped as `stale`.
        """
        if self.wait_for_steps(steps, timeout_sec, version, max_lag) < steps:
            return []
        return self.take_steps(steps)

    def wait_for_steps(self, steps: int, timeout_sec: float, version: int, max_lag: int) -> int:
        """How many steps wait, once there are `steps`, or after `timeout_sec`; stale unrolls are dropped."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting_steps >= steps or self._failure, timeout_sec)
            if self._failure is not None:
                raise RuntimeError("the learner's receiver failed") from self._failure
            self._drop_stale(version - max_lag)
            return self._waiting_steps

    def take_steps(self, steps: int) -> list[ReceivedUnroll]:
        """Whole unrolls of at least `steps` steps together, of which as many wait, oldest first; [] for 0 steps."""
        batch: list[ReceivedUnroll] = []
        with self._changed:
            taken_steps = 0
            while taken_steps < steps:
                batch.append(self._queue.popleft())
                taken_steps += batch[-1].length
            self._waiting_steps -= taken_steps
            self.counts.taken += len(batch)
        self._wake()
        return batch

    def take_samples(self, timeout_sec: float) -> list[ReceivedSamples]:
        """All samples received, in order, which count as stored from now on; [] after `timeout_sec`."""
        with self._changed:
            self._changed.wait_for(lambda: self._sample_queue or self._failure, timeout_sec)
            if self._failure is not None:
                raise RuntimeError("the learner's receiver failed") from self._failure
            taken = list(self._sample_queue)
            self._sample_queue.clear()
            self.samples.stored += self._waiting_samples
            self._waiting_samples = 0
        self._wake()
        return taken

    def mark_duplicate(self, samples: ReceivedSamples) -> None:
        """Count samples that `take_samples` returned as dropped: they were stored before (`duplicate`)."""
        with self._changed:
            self.samples.stored -= samples.length
            self.samples.dropped["duplicate"] += samples.length

    def mark_not_learned(self, unrolls: list[ReceivedUnroll], cause: str = "not_finite") -> None:
        """Count unrolls that `take_batch` returned as dropped: no step was made with them."""
        with self._changed:
            self.counts.taken -= len(unrolls)
            self.counts.dropped[cause] += len(unrolls)
            self.counts.dropped_steps += sum(unroll.length for unroll in unrolls)

    def publish(self, policy: str, version: int, weights: bytes, resident: tuple[str, ...]) -> None:
        """Send a policy's weights to every server, now and after each SERVER_HELLO."""
        with self._changed:
            self.publisher.set_weights(policy, version, weights, resident)
        self._wake()

    @property
    def version_lag(self) -> int:
        """How many versions the server with the oldest weights is behind the newest; 0 without servers."""
        with self._changed:
            return self.publisher.version_lag

    def note_published(self, version: int) -> None:
        """Rank 0 may publish `version` from now on: unrolls of it are expected."""
        with self._changed:
            self.publisher.note_published(version)

    @property
    def untrusted(self) -> dict[str, int]:
        """Messages of peers without the run's token, by type."""
        with self._changed:
            return dict(self._handshake.untrusted)

    @property
    def waiting_steps(self) -> int:
        """Steps that wait to be learned from."""
        return self._waiting_steps

    @property
    def waiting_samples(self) -> int:
        """Samples that wait to be stored."""
        return self._waiting_samples

    def account(self) -> dict[str, Any]:
        """Unrolls received, waiting and dropped, at one moment; the rest were taken."""
        with self._changed:
            counts = self.counts
            return {"received": counts.received, "waiting": len(self._queue), "dropped": dict(counts.dropped)}

    @property
    def what(self) -> str:
        """What it receives, plural."""
        return "unrolls" if self._sample_checker is None else "samples"

    @property
    def met_server(self) -> bool:
        """A server was admitted since process start."""
        return self._handshake.met_server

    @property
    def arrived(self) -> int:
        """Unrolls and samples received, dropped ones included."""
        return self.counts.received + self.samples.received

    def sample_account(self) -> dict[str, Any]:
        """Samples received, stored, waiting and dropped, at one moment."""
        with self._changed:
            counts = self.samples
            return {
                "received": counts.received, "stored": counts.stored, "waiting": self._waiting_samples,
                "dropped": dict(counts.dropped),
            }  # fmt: skip

    def drain_events(self) -> list[str]:
        """Sentences since the last call."""
        with self._changed:
            sources = (self._events, self.publisher.events, self._handshake.events)
            events = [event for source in sources for event in source]
            for source in sources:
                source.clear()
        return events

    # ------------------------------------------------------------ the thread

    def _run(self) -> None:
        try:
            self._loop()
        except BaseException as error:  # noqa: BLE001  (take_batch() raises it in the main loop)
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _loop(self) -> None:
        poller = Poller(self._sockets)
        poller.set_files([self._woken.fileno()])
        while not self._closing:
            poller.wait(REPORT_EVERY_SEC / 2)
            self._clear_wake_up()
            self._receive()
            with self._changed:
                self.publisher.receive_and_send()
                self._events.extend(self._endpoints.restore_missing(time.monotonic()))
            if gone := self._credit_sender.send_credits(self._waiting_steps + self._waiting_samples):
                with self._changed:
                    self.publisher.forget_connections({self._handshake.connection_of(peer) for peer in gone})
        self._receive_last(poller)

    def _receive_last(self, poller: Poller) -> None:
        """Receive until no message comes. No credit is granted, so that running servers soon stop sending."""
        deadline = time.monotonic() + LAST_READS_SEC
        while poller.wait(QUIET_SEC):
            self._clear_wake_up()
            self._receive()
            with self._changed:
                self.publisher.receive_and_send()
            if time.monotonic() > deadline:  # looked at after a read: a pause of the process loses nothing
                break
        with self._changed:
            self.publisher.receive_and_send()

    def _receive(self) -> None:
        for _ in range(MOST_AT_ONCE):
            if (received := self._unrolls.receive()) is None:
                return
            peer, frames = received
            try:
                message, tensors = self._codec.decode(frames)
            except ProtocolError as error:
                if peer in self._handshake:
                    self._drop("malformed", str(error))
                else:
                    self._refuse(None)
                continue
            if isinstance(message, ServerHello):
                self._admit(peer, message)
            elif peer not in self._handshake:
                self._refuse(message)
            elif isinstance(message, Unroll):
                self._receive_unroll(peer, message, tensors)
            elif isinstance(message, SampleBatch):
                self._receive_samples(peer, message, tensors)
            elif isinstance(message, UnrollMemory):
                self._map_memory(peer, message)
            else:
                self._drop("malformed", f"{type(message).__name__} does not belong on the unroll socket")

    def _admit(self, peer: bytes, hello: ServerHello) -> None:
        self._credits.remove_server(peer)
        with self._changed:
            if not self._handshake.admit(peer, hello):
                return
            self.publisher.note_served_version(hello.served_version)
        self._credits.add_server(peer)
        self._credit_sender.resend_all()

    def _refuse(self, message: TO_LEARNER | None) -> None:
        with self._changed:
            self._handshake.refuse(message)

    def _receive_unroll(self, peer: bytes, message: Unroll, tensors: Tensors) -> None:
        self._credits.count_received(peer, message.length)
        try:
            if self._sample_checker is not None:
                words = "this run learns from samples"
                raise RejectedUnroll("wrong_algorithm", words, max(message.length, 0))
            if message.place >= 0:
                tensors = self._memories.copy_unroll(peer, message)
            unroll = self._checker.check(message, tensors)
            played, published = unroll.newest_version, self.publisher.newest_version
            if played > published:
                words = f"its policy version is {played}, the newest that was published {published}"
                raise RejectedUnroll("bad_version", words, unroll.length)
        except ProtocolError as error:
            self._drop("malformed", str(error))
        except RejectedUnroll as error:
            self._drop(error.cause, str(error), error.steps)
        else:
            self._enqueue(unroll)

    def _receive_samples(self, peer: bytes, message: SampleBatch, tensors: Tensors) -> None:
        self._credits.count_received(peer, message.length)
        try:
            if self._sample_checker is None:
                raise RejectedSamples("wrong_algorithm", "this run learns from unrolls", message.length)
            samples, rejected = self._sample_checker.check(message, tensors, self.publisher.newest_version)
        except RejectedSamples as error:
            self._drop_samples(error)
            return
        for each in rejected:
            self._drop_samples(each)
        if samples.length:
            with self._changed:
                self.samples.received += samples.length
                self._sample_queue.append(samples)
                self._waiting_samples += samples.length
                self._changed.notify_all()

    def _drop_samples(self, error: RejectedSamples) -> None:
        with self._changed:
            self.samples.received += error.count
            if not self.samples.dropped[error.cause]:
                self._events.append(f"{error.count} samples were dropped as {error.cause}: {error}.")
            self.samples.dropped[error.cause] += error.count

    def _map_memory(self, peer: bytes, memory: UnrollMemory) -> None:
        if problem := self._memories.map_memory_of(peer, memory, self._credits):
            with self._changed:
                self._events.append(problem)

    def _enqueue(self, unroll: ReceivedUnroll) -> None:
        with self._changed:
            self.counts.received += 1
            self._queue.append(unroll)
            self._waiting_steps += unroll.length
            self._changed.notify_all()

    def _drop(self, cause: str, reason: str, steps: int = 0) -> None:
        with self._changed:
            self.counts.received += 1
            if not self.counts.dropped[cause]:
                self._events.append(f"An unroll was dropped as {cause}: {reason}.")
            self.counts.dropped[cause] += 1
            self.counts.dropped_steps += steps

    def _drop_stale(self, oldest: int) -> None:
        kept = deque(unroll for unroll in self._queue if unroll.oldest_version >= oldest)
        if len(kept) == len(self._queue):
            return
        self.counts.dropped["stale"] += len(self._queue) - len(kept)
        steps = sum(unroll.length for unroll in kept)
        self.counts.dropped_steps += self._waiting_steps - steps
        self._queue, self._waiting_steps = kept, steps

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # a wake-up is pending already
            self._wake_up.send(b"\0")

    def _clear_wake_up(self) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(4096)
