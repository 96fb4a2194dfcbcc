"""The server's two connections to the learner: unrolls and samples out, weights in.

The learner grants credits, one for each unroll or batch of samples; without credits nothing is sent, so no sender ever
blocks. CREDIT is the heartbeat of the learner, several times a second. One that sends none for SILENT_AFTER_SEC counts
as dead: the sockets are opened anew, and what comes is dropped (and counted) until it answers. Places of shared memory
that it had not read yet are taken back.

The learner knows a server by its connection. Where that of the unrolls is lost, it grants nothing more until both are
opened anew, although weights may still arrive. Where only that of the weights is lost, libzmq connects again, and
SERVER_HELLO follows there.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections import deque
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from simul.common.errors import ConfigError, ProtocolError
from simul.common.protocol.codec import Codec, Tensors, encode, expect
from simul.common.protocol.messages import (
    FROM_LEARNER,
    PROTOCOL,
    Credit,
    LentUnrolls,
    SampleBatch,
    ServerHello,
    Unroll,
    Weights,
    WeightsAck,
)
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import unroll_at
from simul.common.transport import ClientKeys, DealerSocket
from simul.inference_server.unrolls.buffer import SharedUnrolls

_log = logging.getLogger("simul-inference")
Received = tuple[Weights, NDArray[np.uint8] | None]  # with their bytes; None: they lie in memory
SILENT_AFTER_SEC = 3.0
RECONNECT_EVERY_SEC = 1.0
MOST_TOGETHER = 256  # lent unrolls in one message: its header has a limit
NO_TENSORS: Tensors = {}  # of a lent unroll: they lie at its place


class _RankConnection:
    """The connection to one rank of the learner: its credit, and what was sent to it and not taken yet.

    With `weights_endpoint`, the learner's weights come over it, too.

    Attributes:
        endpoints: of unrolls and weights, for the next connection.
        in_memory, taken_back: as of `LearnerLink`.
        opened: the rank has the shared memory open.
    """

    def __init__(self, unroll_endpoint: str, weights_endpoint: str = "", keys: ClientKeys | None = None) -> None:
        self.unrolls: DealerSocket | None = None
        self.weights: DealerSocket | None = None
        self.heard_at = self.connected_at = -1e9
        self.opened = False
        self.in_memory = self.taken_back = 0
        self.endpoints = (unroll_endpoint, weights_endpoint)
        self._keys = keys
        self._connection = ""  # names both sockets to the rank
        self._reconnections = 0  # of the weights socket, each answered with a SERVER_HELLO
        self._credit = self._sent = 0
        self._in_flight: deque[int] = deque()  # places of what was sent and not taken yet; -1: went with its message
        self._together: list[Unroll] = []  # the last of those: lent ones, for one message

    @property
    def sockets(self) -> list[DealerSocket]:
        """Open ones."""
        return [socket for socket in (self.unrolls, self.weights) if socket is not None]

    @property
    def credit_left(self) -> int:
        """How many unrolls, or batches of samples, may be sent now."""
        return self._credit - self._sent if self.unrolls is not None else 0

    def alive(self, now: float) -> bool:
        """True if the rank sent CREDIT within SILENT_AFTER_SEC."""
        return now - self.heard_at < SILENT_AFTER_SEC

    def connect(self, now: float, hello: ServerHello, memory: SharedUnrolls | None) -> None:
        """Open the sockets anew: the rank of the last connection is gone, or silent."""
        self.close()
        self.connected_at = now
        unrolls, weights = self.endpoints
        self.unrolls = DealerSocket(unrolls, keys=self._keys)
        self.weights = DealerSocket(weights, keys=self._keys, watch=True) if weights else None
        self._connection, self._reconnections = os.urandom(8).hex(), 0
        for socket in self.sockets:
            socket.send(encode(msgspec.structs.replace(hello, connection=self._connection)))
        if memory is not None:
            self.unrolls.send(encode(memory.message))

    def greet_again(self, hello: ServerHello) -> None:
        """SERVER_HELLO on a weights socket that has lost its connection and has another one now."""
        if self.weights is not None and (count := self.weights.reconnections()) > self._reconnections:
            self._reconnections = count
            self.weights.send(encode(msgspec.structs.replace(hello, connection=self._connection)))

    def forget(self, memory: SharedUnrolls | None) -> None:
        """Take back what was not taken. A rank that still reads it finds another serial."""
        self._credit = self._sent = 0
        self.opened = False
        self.taken_back += len(self._in_flight)
        for place in self._in_flight:
            _give_back(memory, place)
        self._in_flight.clear()
        self._together.clear()

    def use_credit(self, message: Credit, memory: SharedUnrolls | None) -> None:
        """More may be sent; the places of what was taken are free again."""
        self._credit, self.opened = message.total, message.memory
        while len(self._in_flight) > max(self._sent - message.taken, 0):
            _give_back(memory, self._in_flight.popleft())

    def send(self, message: Unroll | SampleBatch, tensors: Tensors, memory: SharedUnrolls | None) -> bool:
        """False where the rank is full. A lent unroll, whose `tensors` are not read, goes with the next `flush`."""
        if self.credit_left <= 0 or self.unrolls is None:
            return False
        place = _place(message)
        if isinstance(message, Unroll) and place >= 0 and self.opened:
            self._together.append(message)
            self.in_memory += 1
            self._in_flight.append(place)
        else:
            if memory is not None and place >= 0:
                tensors = unroll_at(memory.tables, place, message.length)
            if not (self.flush() and self.unrolls.send(encode(_without_place(message), tensors))):
                return False
            self._in_flight.append(-1)
            _give_back(memory, place)
        self._sent += 1
        return True

    def flush(self) -> bool:
        """Send the lent unrolls, in one message: each message wakes the library's thread. False: some still wait."""
        while self._together and self.unrolls is not None:
            some = tuple(self._together[:MOST_TOGETHER])
            if not self.unrolls.send(encode(some[0] if len(some) == 1 else LentUnrolls(unrolls=some))):
                return False
            del self._together[: len(some)]
        return not self._together

    def close(self) -> None:
        """Close its sockets."""
        for socket in self.sockets:
            socket.close()


class LearnerLink:
    """Flow control and reconnection. Never blocks; time is an argument.

    A learner of several ranks receives unrolls at each of them: each goes to the rank that has granted the most. It
    counts as dead when all ranks are silent.
    """

    def __init__(
        self, unroll_endpoint: str, weights_endpoint: str, spec: GameSpec, token: str, *,
        shared_memory: bool = False, other_ranks: Sequence[str] = (),
        keys: ClientKeys | None = None, look_up: Callable[[int], tuple[str, str]] | None = None,
    ) -> None:  # fmt: skip
        """`token`: the run's. `shared_memory`: weights may be read where they lie in the learner's memory.

        `other_ranks`: the unroll endpoints of the learner's ranks but the first, which alone sends weights.
        `look_up`: called before each reconnection to a rank, with its number, for the endpoints of its unrolls and
        weights (""): a learner may start elsewhere. Where it raises ConfigError, the former ones are tried again.
        """
        self._ranks = [_RankConnection(unroll_endpoint, weights_endpoint, keys)]
        self._ranks += [_RankConnection(endpoint, "", keys) for endpoint in other_ranks]
        self._look_up = look_up
        self._fingerprint = spec.fingerprint()
        self._token = token
        self._shared_memory = shared_memory
        self._codec: Codec[FROM_LEARNER] = Codec(FROM_LEARNER)
        self._look_at = 0.0
        self._backlog: deque[tuple[Unroll | SampleBatch, Tensors]] = deque()
        self._memory: SharedUnrolls | None = None

    @property
    def in_memory(self) -> int:
        """Unrolls sent by their places."""
        return sum(rank.in_memory for rank in self._ranks)

    @property
    def taken_back(self) -> int:
        """What a rank of the learner had not taken when it fell silent."""
        return sum(rank.taken_back for rank in self._ranks)

    @property
    def credit_left(self) -> int:
        """How many unrolls, or batches of samples, may be sent now."""
        return sum(rank.credit_left for rank in self._ranks)

    def sockets(self) -> list[DealerSocket]:
        """Sockets to wait on."""
        return [socket for rank in self._ranks for socket in rank.sockets]

    def alive(self, now: float) -> bool:
        """True if a rank of the learner sent CREDIT within SILENT_AFTER_SEC."""
        return any(rank.alive(now) for rank in self._ranks)

    def has_room(self, now: float) -> bool:
        """False while a living learner is full: training decisions wait. With a dead one unrolls are dropped."""
        return not self._backlog or not self.alive(now)

    def share(self, memory: SharedUnrolls) -> None:
        """From now on a learner that can open this memory may be offered unrolls whose places it is lent."""
        self._memory = memory
        for rank in self._ranks:
            if rank.unrolls is not None:
                rank.unrolls.send(encode(memory.message))

    def reads_memory(self, now: float) -> bool:
        """The learner lives and has the shared memory open, at one rank at least."""
        return any(rank.opened and rank.alive(now) for rank in self._ranks)

    def offer(self, message: Unroll | SampleBatch, tensors: Tensors, now: float) -> bool:
        """Send an unroll or samples, now or when there is credit. False when the learner is dead: they are dropped.

        Lent unrolls, offered with NO_TENSORS, go with the next `flush`. What else has to wait is copied.
        """
        if not self.alive(now):
            return False
        if self._backlog or not self._send(message, tensors):
            self._backlog.append((message, {name: array.copy() for name, array in tensors.items()}))
        return True

    def flush(self) -> None:
        """Send the lent unrolls that were offered since the last time."""
        for rank in self._ranks:
            rank.flush()

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
            _give_back(self._memory, _place(message))
        return lost

    def poll(self, now: float, served_version: int) -> list[Received]:
        """Take in credits and weights; reconnect where the learner is silent. Newest weights last."""
        received = [each for rank in self._ranks for each in self._receive(rank, now)]
        for number, rank in enumerate(self._ranks):
            if not rank.alive(now) and now - rank.connected_at >= RECONNECT_EVERY_SEC:
                rank.forget(self._memory)
                if self._look_up is not None:
                    with contextlib.suppress(ConfigError):  # the address book cannot be read now: where it was before
                        rank.endpoints = self._look_up(number)
                rank.connect(now, self._hello(served_version), self._memory)
        if now >= self._look_at:
            self._look_at = now + RECONNECT_EVERY_SEC
            self._ranks[0].greet_again(self._hello(served_version))
        while self._backlog and self._send(*self._backlog[0]):
            self._backlog.popleft()
        self.flush()
        return received

    def acknowledge(
        self, weights: Weights, reason: str = "", *, unreadable: bool = False, overtaken: bool = False
    ) -> None:
        """Tell the learner whether its weights were accepted; it sends no others before.

        `unreadable`: asks for the bytes. `overtaken`: newer ones are here.
        """
        if (socket := self._ranks[0].weights) is not None:
            ack = WeightsAck(
                policy=weights.policy, policy_version=weights.policy_version,
                accepted=not reason, reason=reason, unreadable=unreadable, overtaken=overtaken,
            )  # fmt: skip
            socket.send(encode(ack))

    def close(self) -> None:
        """Close all sockets and the memory; a learner that has it open can read on."""
        self.flush()
        for rank in self._ranks:
            rank.close()
        if self._memory is not None:
            self._memory.close()

    def _receive(self, rank: _RankConnection, now: float) -> list[Received]:
        received: list[Received] = []
        for socket in rank.sockets:
            while (frames := socket.receive()) is not None:
                if socket is rank.unrolls:  # weights may arrive while the learner does not know the other connection
                    rank.heard_at = now
                try:
                    message, tensors = self._codec.decode(frames)
                    if isinstance(message, Credit):
                        rank.use_credit(message, self._memory)
                    elif isinstance(message, Weights):
                        data = None if message.path else expect(tensors, "safetensors", "uint8", (None,))
                        received.append((message, data))
                except ProtocolError as error:
                    _log.warning("a message of the learner is ignored: %s", error)
        return received

    def _hello(self, served_version: int) -> ServerHello:
        return ServerHello(
            protocol=PROTOCOL, spec_fingerprint=self._fingerprint,
            served_version=served_version, shared_memory=self._shared_memory, token=self._token,
        )  # fmt: skip

    def _send(self, message: Unroll | SampleBatch, tensors: Tensors) -> bool:
        """False where the learner is full."""
        return max(self._ranks, key=lambda rank: rank.credit_left).send(message, tensors, self._memory)


def _give_back(memory: SharedUnrolls | None, place: int) -> None:
    if place >= 0 and memory is not None:
        memory.places.take_back(place)


def _place(message: Unroll | SampleBatch) -> int:
    """The place of an unroll that lies in shared memory; -1: the tensors go with the message."""
    return message.place if isinstance(message, Unroll) else -1


def _without_place(message: Unroll | SampleBatch) -> Unroll | SampleBatch:
    """For a learner that came after the unroll was lent, and cannot open the memory."""
    if isinstance(message, Unroll) and message.place >= 0:
        return msgspec.structs.replace(message, place=-1, serial=0)
    return message
