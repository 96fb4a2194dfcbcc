"""The learner's I/O thread: takes unrolls in, grants credit, hands weights out. It never waits for the main loop."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from simul.common.protocol.codec import Codec, Tensors
from simul.common.protocol.errors import ProtocolError
from simul.common.protocol.messages import TO_LEARNER, ServerHello, Unroll, UnrollMemory
from simul.common.runtime.lifecycle import REPORT_EVERY_SEC
from simul.common.transport import EndpointMonitor, Poller, RouterSocket
from simul.learner.batches import ReceivedUnroll, RejectedUnroll, UnrollChecker
from simul.learner.credits import CreditBook
from simul.learner.grants import Grants
from simul.learner.memories import UnrollMemories
from simul.learner.server_handshake import Handshake
from simul.learner.weight_publisher import MOST_AT_ONCE, Postbox

QUIET_SEC = 0.1  # nothing came for so long: whatever servers had sent before they ended is here
LAST_READS_SEC = 2.0


@dataclass
class InboxCounts:
    """Of admitted servers, since process start. received = taken + dropped + waiting, in unrolls."""

    received: int = 0
    taken: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    dropped_steps: int = 0  # of those whose length is known


class Inbox:
    """Owns both sockets from `start()` to `close()`. All methods are called by the main loop."""

    def __init__(
        self,
        unroll_socket: RouterSocket,
        weights_socket: RouterSocket,
        checker: UnrollChecker,
        credits: CreditBook,
        handshake: Handshake,
    ) -> None:
        self.counts = InboxCounts()
        self.postbox = Postbox(weights_socket, handshake)
        self._handshake = handshake
        self._unrolls = unroll_socket
        self._checker = checker
        self._credits = credits
        self._memories = UnrollMemories(checker.layout)
        self._grants = Grants(unroll_socket, credits, self._memories)
        self._endpoints = EndpointMonitor(unroll_socket, weights_socket)
        self._codec: Codec[TO_LEARNER] = Codec(TO_LEARNER)
        self._queue: deque[ReceivedUnroll] = deque()
        self._waiting_steps = 0
        self._events: deque[str] = deque(maxlen=100)
        self._changed = threading.Condition()
        self._wake_up, self._woken = socket.socketpair()
        for end in (self._wake_up, self._woken):
            end.setblocking(False)
        self._closing = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="simul-learner-inbox", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def finish(self) -> None:
        """Stop the thread. What was published goes out first, and what servers have sent is taken in."""
        if self._thread.is_alive():
            self._closing = True
            self._wake()
            self._thread.join(timeout=5)

    def close(self) -> None:
        """Finish, and close everything."""
        self.finish()
        for end in (self._wake_up, self._woken):
            end.close()
        self.postbox.close()

    def take(self, steps: int, timeout_sec: float, version: int, max_lag: int) -> list[ReceivedUnroll]:
        """Whole unrolls that together have at least `steps` steps, oldest first; [] if `timeout_sec` pass before.

        Those whose oldest step is more than `max_lag` versions behind `version` are dropped as `stale`.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting_steps >= steps or self._failure, timeout_sec)
            if self._failure is not None:
                raise RuntimeError("the learner's inbox failed") from self._failure
            self._drop_stale(version - max_lag)
            if self._waiting_steps < steps:
                return []
            batch: list[ReceivedUnroll] = []
            taken_steps = 0
            while taken_steps < steps:
                batch.append(self._queue.popleft())
                taken_steps += batch[-1].length
            self._waiting_steps -= taken_steps
            self.counts.taken += len(batch)
        self._wake()
        return batch

    def not_learned(self, unrolls: list[ReceivedUnroll]) -> None:
        """Of those that `take` returned, these taught nothing: they are dropped as `not_finite`."""
        with self._changed:
            self.counts.taken -= len(unrolls)
            self.counts.dropped["not_finite"] += len(unrolls)
            self.counts.dropped_steps += sum(unroll.length for unroll in unrolls)

    def publish(self, policy: str, version: int, weights: bytes, resident: tuple[str, ...]) -> None:
        """Send a policy's weights to every server, now and whenever one says SERVER_HELLO."""
        with self._changed:
            self.postbox.post(policy, version, weights, resident)
        self._wake()

    @property
    def untrusted(self) -> dict[str, int]:
        """Messages of peers that have not shown the run's token, by type."""
        with self._changed:
            return dict(self._handshake.untrusted)

    @property
    def waiting_steps(self) -> int:
        """Steps that wait to be learned from."""
        return self._waiting_steps

    def account(self) -> dict[str, Any]:
        """What arrived and what became of it, at one moment; the others were taken."""
        with self._changed:
            counts = self.counts
            return {"received": counts.received, "waiting": len(self._queue), "dropped": dict(counts.dropped)}

    def events(self) -> list[str]:
        """Sentences since the last call."""
        with self._changed:
            sources = (self._events, self.postbox.events, self._handshake.events)
            events = [event for source in sources for event in source]
            for source in sources:
                source.clear()
        return events

    # ------------------------------------------------------------ the thread

    def _run(self) -> None:
        try:
            self._loop()
        except BaseException as error:  # noqa: BLE001  (take() raises it in the main loop)
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _loop(self) -> None:
        poller = Poller((self._unrolls, self.postbox.socket))
        poller.set_files([self._woken.fileno()])
        while not self._closing:
            poller.wait(REPORT_EVERY_SEC / 2)
            self._sleep_again()
            self._receive()
            with self._changed:
                self.postbox.exchange()
                self._events.extend(self._endpoints.restore_missing(time.monotonic()))
            self._grants.send(self._waiting_steps)
        self._take_in_the_last(poller)

    def _take_in_the_last(self, poller: Poller) -> None:
        """Until nothing comes any more. No credit is granted, so that servers that go on soon have to stop."""
        deadline = time.monotonic() + LAST_READS_SEC
        while poller.wait(QUIET_SEC) and time.monotonic() < deadline:
            self._sleep_again()
            self._receive()
            with self._changed:
                self.postbox.exchange()
        with self._changed:
            self.postbox.exchange()

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
                self._greet(peer, message)
            elif peer not in self._handshake:
                self._refuse(message)
            elif isinstance(message, Unroll):
                self._take_in(peer, message, tensors)
            elif isinstance(message, UnrollMemory):
                self._open(peer, message)
            else:
                self._drop("malformed", f"{type(message).__name__} does not belong on the unroll socket")

    def _greet(self, peer: bytes, hello: ServerHello) -> None:
        self._credits.left(peer)
        with self._changed:
            if not self._handshake.admit(peer, hello):
                return
            self.postbox.heard_served(hello.served_version)
        self._credits.joined(peer)
        self._grants.hurry()

    def _refuse(self, message: TO_LEARNER | None) -> None:
        with self._changed:
            self._handshake.refuse(message)

    def _take_in(self, peer: bytes, message: Unroll, tensors: Tensors) -> None:
        self._credits.received(peer, message.length)
        try:
            if message.place >= 0:
                tensors = self._memories.tensors(peer, message)
            unroll = self._checker.check(message, tensors)
            played, published = unroll.newest_version, self.postbox.newest_version
            if played > published:
                words = f"its policy version is {played}, the newest that was published {published}"
                raise RejectedUnroll("bad_version", words, unroll.length)
        except ProtocolError as error:
            self._drop("malformed", str(error))
        except RejectedUnroll as error:
            self._drop(error.cause, str(error), error.steps)
        else:
            self._put(unroll)

    def _open(self, peer: bytes, memory: UnrollMemory) -> None:
        if problem := self._memories.open(peer, memory, self._credits):
            with self._changed:
                self._events.append(problem)

    def _put(self, unroll: ReceivedUnroll) -> None:
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
        with suppress(BlockingIOError):  # it is awake already
            self._wake_up.send(b"\0")

    def _sleep_again(self) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(4096)
