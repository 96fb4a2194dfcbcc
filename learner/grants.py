"""What servers are told on the unroll socket: how much they may send, what was taken, whether their memory is open."""

from __future__ import annotations

import time

from simul.common.protocol.codec import encode
from simul.common.protocol.messages import Credit
from simul.common.runtime.lifecycle import REPORT_EVERY_SEC
from simul.common.transport import RouterSocket
from simul.learner.credits import CreditBook
from simul.learner.memories import UnrollMemories


class Grants:
    """CREDIT to every server when it changes, and as a sign of life."""

    def __init__(self, socket: RouterSocket, credits: CreditBook, memories: UnrollMemories) -> None:
        self._socket = socket
        self._credits = credits
        self._memories = memories
        self._said: dict[bytes, Credit] = {}
        self._next = 0.0

    def hurry(self) -> None:
        """Tell everybody the next time."""
        self._next = 0.0

    def send(self, waiting_steps: int) -> None:
        """A server that is gone is forgotten; what it was granted is free again."""
        now = time.monotonic()
        for peer, total in self._credits.grant(waiting_steps).items():
            credit = Credit(total=total, taken=self._credits.taken(peer), memory=self._memories.has(peer))
            if credit == self._said.get(peer) and now < self._next:
                continue
            if self._socket.send(peer, encode(credit)):
                self._said[peer] = credit
            else:
                self._credits.left(peer)
                self._said.pop(peer, None)
        if now >= self._next:
            self._next = now + REPORT_EVERY_SEC / 2
