"""How many unrolls each server may send. I/O thread only."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from simul.common.protocol.codec import encode
from simul.common.protocol.messages import Credit
from simul.common.role.reports import REPORT_EVERY_SEC
from simul.common.transport import RouterSocket
from simul.learner.io.unroll_memory import UnrollMemories

EQUAL_SHARE = 0.05  # of all credit: divided equally, whatever a server has sent lately


@dataclass
class _Peer:
    received: int = 0
    granted: int = 0
    demand: float = 0.0  # its part of what arrived lately
    counted: int = 0  # of `received`, what `demand` includes

    @property
    def outstanding(self) -> int:
        """Granted and not received yet. What arrives after its grant was lowered is not negative."""
        return max(self.granted - self.received, 0)


class CreditAllocator:
    """How many unrolls each server may send: about two batches in all. Cumulative from its SERVER_HELLO on. Pure.

    The steps waiting here and those granted but not yet received may together reach `capacity_steps`. An unroll not
    yet received is assumed to have the mean length of those received. Every server can always send one. For alphazero
    read "batch of samples" for "unroll" and "sample" for "step".

    Credit follows demand: EQUAL_SHARE of it is divided equally, the rest by what arrived from each server over the last
    `capacity_steps`. A server that has used up its credit counts for twice as much, up to an equal part, so that one
    whose demand rises, or two that are both limited by credit, soon have theirs. What exceeds a server's part of the
    capacity is taken back where another lacks credit. Unrolls that were on their way by then still count: for as long
    as a CREDIT travels, the capacity may be exceeded by what was taken back.
    """

    def __init__(self, capacity_steps: int, unroll_length: int) -> None:
        self._capacity = capacity_steps
        self._mean_length = float(unroll_length)
        self._peers: dict[bytes, _Peer] = {}

    def add_server(self, peer: bytes) -> None:
        """Start, or restart, a server's count at 0: it sent SERVER_HELLO."""
        self._peers.pop(peer, None)
        mean = sum(other.demand for other in self._peers.values()) / len(self._peers) if self._peers else 1.0
        self._peers[peer] = _Peer(demand=mean)

    def remove_server(self, peer: bytes) -> None:
        """Forget a server; its grants are free again."""
        self._peers.pop(peer, None)

    def count_received(self, peer: bytes, length: int) -> None:
        """Count an unroll; not that of a server that is removed."""
        if peer in self._peers:
            self._peers[peer].received += 1
            self._mean_length += 0.01 * (length - self._mean_length)

    def __contains__(self, peer: object) -> bool:
        return peer in self._peers

    def received_from(self, peer: bytes) -> int:
        """Unrolls received from a server since its SERVER_HELLO."""
        return self._peers[peer].received

    def grant_credits(self, waiting_steps: int) -> dict[bytes, int]:
        """Cumulative grant of each server. That of a lone server is never lower than before."""
        shares = self._shares()
        room = self._unrolls(self._capacity - waiting_steps)
        free = room - sum(peer.outstanding for peer in self._peers.values())
        lacking = {name: round(share * room) - self._peers[name].outstanding for name, share in shares.items()}
        lacking = {name: unrolls for name, unrolls in lacking.items() if unrolls > 0}
        wanted = sum(lacking.values())
        if wanted > free:
            free += self._take_back(shares, wanted - max(free, 0))
        for name, unrolls in lacking.items():
            peer = self._peers[name]
            peer.granted = max(peer.granted, peer.received) + unrolls * max(min(free, wanted), 0) // wanted
        if waiting_steps < self._capacity:
            for peer in self._peers.values():
                peer.granted = max(peer.granted, peer.received + 1)
        return {name: peer.granted for name, peer in self._peers.items()}

    def _unrolls(self, steps: float) -> int:
        return max(int(steps / max(self._mean_length, 1.0)), 0)

    def _shares(self) -> dict[bytes, float]:
        """Each server's part of the credit; together 1."""
        if len(self._peers) == 1:
            return dict.fromkeys(self._peers, 1.0)
        self._update_demand()
        equal, total = EQUAL_SHARE / max(len(self._peers), 1), sum(peer.demand for peer in self._peers.values())
        return {name: equal + (1 - EQUAL_SHARE) * peer.demand / total for name, peer in self._peers.items()}

    def _update_demand(self) -> None:
        arrived = sum(peer.received - peer.counted for peer in self._peers.values())
        kept = math.exp(-arrived / max(self._unrolls(self._capacity), 1))
        equal = 1.0 / max(len(self._peers), 1)
        for peer in self._peers.values():
            if arrived:
                peer.demand = peer.demand * kept + (peer.received - peer.counted) / arrived * (1.0 - kept)
            peer.counted = peer.received
            if not peer.outstanding:
                peer.demand = max(peer.demand, min(2 * max(peer.demand, EQUAL_SHARE * equal), equal))

    def _take_back(self, shares: dict[bytes, float], unrolls: int) -> int:
        """Lower grants beyond the servers' parts of the whole capacity, not of the room: that changes all the time."""
        capacity, taken = self._unrolls(self._capacity), 0
        for name, share in shares.items():
            peer = self._peers[name]
            excess = min(peer.outstanding - max(round(share * capacity), 1), unrolls - taken)
            if excess > 0:
                peer.granted -= excess
                taken += excess
        return taken


class CreditSender:
    """Sends CREDIT to every server: when its content changes, and periodically as a heartbeat."""

    def __init__(self, socket: RouterSocket, credits: CreditAllocator, memories: UnrollMemories) -> None:
        self._socket = socket
        self.allocator = credits
        self._memories = memories
        self._said: dict[bytes, Credit] = {}
        self._next = 0.0

    def resend_all(self) -> None:
        """Send to every server the next time."""
        self._next = 0.0

    def send_credits(self, waiting_steps: int) -> list[bytes]:
        """Send what is due. Returns the servers that are gone, which lose their grants.

        One whose queue is full keeps them: it is stopped, or busy, and its connection stands.
        """
        now, gone = time.monotonic(), []
        for peer, total in self.allocator.grant_credits(waiting_steps).items():
            received = self.allocator.received_from(peer)
            credit = Credit(total=total, taken=received, memory=self._memories.is_mapped(peer))
            if credit == self._said.get(peer) and now < self._next:
                continue
            outcome = self._socket.deliver(peer, encode(credit))
            if outcome == "sent":
                self._said[peer] = credit
            elif outcome == "gone":
                self.allocator.remove_server(peer)
                self._said.pop(peer, None)
                gone.append(peer)
        if now >= self._next:
            self._next = now + REPORT_EVERY_SEC / 2
        return gone
