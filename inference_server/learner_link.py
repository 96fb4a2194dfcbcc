"""The server's two wires to the learner: unrolls out, weights in.

The learner grants credits; without credits nothing is sent, so no sender ever blocks. A learner that falls
silent is taken for dead: its sockets are opened anew, and unrolls are dropped (and counted) until it is back.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from common.codec import Codec, Tensors, encode, expect
from common.errors import ProtocolError
from common.messages import FROM_LEARNER, PROTOCOL, Credit, ServerHello, Unroll, Weights, WeightsAck
from common.specs import GameSpec
from common.transport import DealerSocket

SILENT_AFTER_SEC = 3.0
RECONNECT_EVERY_SEC = 1.0


class LearnerLink:
    """Flow control and reconnection. Never blocks; time is an argument."""

    def __init__(self, unroll_endpoint: str, weights_endpoint: str, spec: GameSpec) -> None:
        self._endpoints = (unroll_endpoint, weights_endpoint)
        self._fingerprint = spec.fingerprint()
        self._codec: Codec[FROM_LEARNER] = Codec(FROM_LEARNER)
        self._backlog: deque[tuple[Unroll, Tensors]] = deque()
        self._unrolls: DealerSocket | None = None
        self._weights: DealerSocket | None = None
        self._heard_at = self._connected_at = -1e9
        self._credit = self._sent = 0
        self.malformed = 0

    def sockets(self) -> list[DealerSocket]:
        """Sockets to wait on."""
        return [socket for socket in (self._unrolls, self._weights) if socket is not None]

    def alive(self, now: float) -> bool:
        """The learner was heard of lately."""
        return now - self._heard_at < SILENT_AFTER_SEC

    def has_room(self, now: float) -> bool:
        """False while a living learner is full: training decisions wait. A dead one takes (and loses) everything."""
        return not self._backlog or not self.alive(now)

    def offer(self, message: Unroll, tensors: Tensors, now: float) -> bool:
        """Send an unroll, now or (a copy) when there is credit. False when the learner is dead: it is dropped."""
        if not self.alive(now):
            return False
        if self._backlog or not self._send(message, tensors):
            self._backlog.append((message, {name: array.copy() for name, array in tensors.items()}))
        return True

    def drop_backlog(self, now: float) -> list[Unroll]:
        """Unrolls that can no longer be sent because the learner died meanwhile."""
        if self.alive(now) or not self._backlog:
            return []
        lost = [message for message, _ in self._backlog]
        self._backlog.clear()
        return lost

    def poll(self, now: float, served_version: int) -> list[tuple[Weights, NDArray[np.uint8]]]:
        """Take in credits and weights, uint8 [bytes]; reconnect where the learner is silent. Newest weights last."""
        if not self.alive(now) and now - self._connected_at >= RECONNECT_EVERY_SEC:
            self._connect(now, served_version)
        received: list[tuple[Weights, NDArray[np.uint8]]] = []
        for socket in self.sockets():
            while (frames := socket.receive()) is not None:
                self._heard_at = now
                try:
                    message, tensors = self._codec.decode(frames)
                    if isinstance(message, Credit):
                        self._credit = message.total
                    elif isinstance(message, Weights):
                        received.append((message, expect(tensors, "safetensors", "uint8", (None,))))
                except ProtocolError:
                    self.malformed += 1
        self._flush()
        return received

    def acknowledge(self, weights: Weights, reason: str = "") -> None:
        """Tell the learner whether its weights were taken."""
        if self._weights is not None:
            ack = WeightsAck(
                policy=weights.policy, policy_version=weights.policy_version, accepted=not reason, reason=reason
            )
            self._weights.send(encode(ack))

    def close(self) -> None:
        """Close both sockets."""
        for socket in self.sockets():
            socket.close()

    def _connect(self, now: float, served_version: int) -> None:
        self.close()
        self._connected_at = now
        self._credit = self._sent = 0
        self._unrolls, self._weights = (DealerSocket(endpoint) for endpoint in self._endpoints)
        hello = ServerHello(protocol=PROTOCOL, spec_fingerprint=self._fingerprint, served_version=served_version)
        for socket in (self._unrolls, self._weights):
            socket.send(encode(hello))

    def _flush(self) -> None:
        while self._backlog and self._send(*self._backlog[0]):
            self._backlog.popleft()

    def _send(self, message: Unroll, tensors: Tensors) -> bool:
        """False where the learner is full."""
        if self._sent >= self._credit or self._unrolls is None or not self._unrolls.send(encode(message, tensors)):
            return False
        self._sent += 1
        return True
