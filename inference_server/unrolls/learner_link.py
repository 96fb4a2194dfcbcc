"""The server's two connections to the learner: unrolls and samples out, weights in.

The learner grants credits, one for each unroll or batch of samples; without credits nothing is sent, so no sender ever
blocks. A learner that is silent for SILENT_AFTER_SEC counts as dead: the sockets are opened anew, and what comes is
dropped (and counted) until it answers. Places of shared memory that it had not read yet are taken back.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.codec import Codec, Tensors, encode, expect
from simul.common.protocol.errors import ProtocolError
from simul.common.protocol.messages import (
    FROM_LEARNER,
    PROTOCOL,
    Credit,
    SampleBatch,
    ServerHello,
    Unroll,
    Weights,
    WeightsAck,
)
from simul.common.protocol.specs import GameSpec
from simul.common.transport import ClientKeys, DealerSocket
from simul.inference_server.unrolls.buffer import UnrollMemory

Received = tuple[Weights, NDArray[np.uint8] | None]  # with their bytes; None: they lie in memory
SILENT_AFTER_SEC = 3.0
RECONNECT_EVERY_SEC = 1.0


class LearnerLink:
    """Flow control and reconnection. Never blocks; time is an argument."""

    def __init__(
        self, unroll_endpoint: str, weights_endpoint: str, spec: GameSpec, token: str, *, shared_memory: bool = False,
        keys: ClientKeys | None = None, look_up: Callable[[], tuple[str, str]] | None = None,
    ) -> None:  # fmt: skip
        """`token`: the run's. `shared_memory`: weights may be read where they lie in the learner's memory.

        `look_up`: called before each reconnection for both endpoints, for a learner that may start elsewhere.
        """
        self._endpoints = (unroll_endpoint, weights_endpoint)
        self._look_up = look_up
        self._keys = keys
        self._fingerprint = spec.fingerprint()
        self._token = token
        self._shared_memory = shared_memory
        self._codec: Codec[FROM_LEARNER] = Codec(FROM_LEARNER)
        self._backlog: deque[tuple[Unroll | SampleBatch, Tensors]] = deque()
        self._unrolls: DealerSocket | None = None
        self._weights: DealerSocket | None = None
        self._heard_at = self._connected_at = -1e9
        self._credit = self._sent = 0
        self._memory: UnrollMemory | None = None
        self._opened = False  # the learner has the memory
        self._in_flight: deque[int] = deque()  # places of what was sent and not taken yet; -1: went with its message
        self.in_memory = 0  # unrolls sent by their places
        self.taken_back = 0  # of these, what the learner had not taken when it fell silent
        self.malformed = 0

    def sockets(self) -> list[DealerSocket]:
        """Sockets to wait on."""
        return [socket for socket in (self._unrolls, self._weights) if socket is not None]

    def alive(self, now: float) -> bool:
        """True if the learner sent something within SILENT_AFTER_SEC."""
        return now - self._heard_at < SILENT_AFTER_SEC

    def has_room(self, now: float) -> bool:
        """False while a living learner is full: training decisions wait. A dead one takes (and loses) everything."""
        return not self._backlog or not self.alive(now)

    def share(self, memory: UnrollMemory) -> None:
        """From now on a learner that can open this memory may be offered unrolls whose places it is lent."""
        self._memory = memory
        if self._unrolls is not None:
            self._unrolls.send(encode(memory.message))

    def reads_memory(self, now: float) -> bool:
        """The learner lives and has the shared memory open."""
        return self._opened and self.alive(now)

    def offer_unroll(self, message: Unroll, tensors: Tensors, now: float) -> bool:
        """Send an unroll, now or when there is credit. False when the learner is dead: it is dropped.

        What has no lent place is copied where it has to wait.
        """
        return self._offer(message, tensors, now)

    def offer_samples(self, message: SampleBatch, tensors: Tensors, now: float) -> bool:
        """Send samples, now or when there is credit. False when the learner is dead: they are dropped."""
        return self._offer(message, tensors, now)

    def backlog(self) -> tuple[int, int]:
        """Unrolls that wait until the learner has room, and their steps."""
        lengths = [message.length for message, _ in self._backlog if isinstance(message, Unroll)]
        return len(lengths), sum(lengths)

    def samples_waiting(self) -> int:
        """Samples that wait until the learner has room."""
        return sum(message.length for message, _ in self._backlog if isinstance(message, SampleBatch))

    def drop_backlog(self, now: float) -> list[Unroll | SampleBatch]:
        """Unrolls and samples that can no longer be sent because the learner died meanwhile."""
        if self.alive(now) or not self._backlog:
            return []
        lost = [message for message, _ in self._backlog]
        self._backlog.clear()
        for message in lost:
            self._give_back(_place(message))
        return lost

    def poll(self, now: float, served_version: int) -> list[Received]:
        """Take in credits and weights; reconnect where the learner is silent. Newest weights last."""
        received: list[Received] = []
        for socket in self.sockets():
            while (frames := socket.receive()) is not None:
                self._heard_at = now
                try:
                    message, tensors = self._codec.decode(frames)
                    if isinstance(message, Credit):
                        self._use_credit(message)
                    elif isinstance(message, Weights):
                        data = None if message.path else expect(tensors, "safetensors", "uint8", (None,))
                        received.append((message, data))
                except ProtocolError:
                    self.malformed += 1
        if not self.alive(now) and now - self._connected_at >= RECONNECT_EVERY_SEC:
            self._connect(now, served_version)
        self._flush()
        return received

    def acknowledge(
        self, weights: Weights, reason: str = "", *, unreadable: bool = False, overtaken: bool = False
    ) -> None:
        """Tell the learner whether its weights were accepted; it sends no others before.

        `unreadable`: asks for the bytes. `overtaken`: newer ones are here.
        """
        if self._weights is not None:
            ack = WeightsAck(
                policy=weights.policy, policy_version=weights.policy_version,
                accepted=not reason, reason=reason, unreadable=unreadable, overtaken=overtaken,
            )  # fmt: skip
            self._weights.send(encode(ack))

    def close(self) -> None:
        """Close both sockets and the memory; a learner that has it open can read on."""
        self._close_sockets()
        if self._memory is not None:
            self._memory.close()

    def _close_sockets(self) -> None:
        for socket in self.sockets():
            socket.close()

    def _use_credit(self, message: Credit) -> None:
        self._credit, self._opened = message.total, message.memory
        while len(self._in_flight) > max(self._sent - message.taken, 0):
            self._give_back(self._in_flight.popleft())

    def _give_back(self, place: int) -> None:
        if place >= 0 and self._memory is not None:
            self._memory.places.take_back(place)

    def _connect(self, now: float, served_version: int) -> None:
        self._close_sockets()
        self._connected_at = now
        self._forget()
        if self._look_up is not None:
            self._endpoints = self._look_up()
        self._unrolls, self._weights = (DealerSocket(endpoint, keys=self._keys) for endpoint in self._endpoints)
        hello = ServerHello(
            protocol=PROTOCOL, spec_fingerprint=self._fingerprint,
            served_version=served_version, shared_memory=self._shared_memory, token=self._token,
            connection=os.urandom(8).hex(),
        )  # fmt: skip
        for socket in (self._unrolls, self._weights):
            socket.send(encode(hello))
        if self._memory is not None:
            self._unrolls.send(encode(self._memory.message))

    def _forget(self) -> None:
        """The learner of the last connection is gone, or finds the serials of what it had not read yet changed."""
        self._credit = self._sent = 0
        self._opened = False
        for place in self._in_flight:
            self.taken_back += place >= 0
            self._give_back(place)
        self._in_flight.clear()

    def _flush(self) -> None:
        while self._backlog and self._send(*self._backlog[0]):
            self._backlog.popleft()

    def _offer(self, message: Unroll | SampleBatch, tensors: Tensors, now: float) -> bool:
        if not self.alive(now):
            return False
        if self._backlog or not self._send(message, tensors):
            kept = tensors if _place(message) >= 0 else {name: array.copy() for name, array in tensors.items()}
            self._backlog.append((message, kept))
        return True

    def _send(self, message: Unroll | SampleBatch, tensors: Tensors) -> bool:
        """False where the learner is full."""
        if self._sent >= self._credit or self._unrolls is None:
            return False
        place = _place(message)
        by_place = place >= 0 and self._opened
        if not self._unrolls.send(encode(message) if by_place else encode(_without_place(message), tensors)):
            return False
        self._sent += 1
        self.in_memory += by_place
        self._in_flight.append(place if by_place else -1)
        if not by_place:
            self._give_back(place)
        return True


def _place(message: Unroll | SampleBatch) -> int:
    """The place of an unroll that lies in shared memory; -1: the tensors go with the message."""
    return message.place if isinstance(message, Unroll) else -1


def _without_place(message: Unroll | SampleBatch) -> Unroll | SampleBatch:
    """For a learner that came after the unroll was lent, and cannot open the memory."""
    if isinstance(message, Unroll) and message.place >= 0:
        return msgspec.structs.replace(message, place=-1, serial=0)
    return message
