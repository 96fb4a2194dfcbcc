"""How many unrolls each server may send: enough to fill about two batches, never more. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class _Peer:
    received: int = 0
    granted: int = 0


class CreditBook:
    """Cumulative grants per server, counted from its SERVER_HELLO on.

    What waits here and what is granted but has not come yet may together reach `capacity_steps`; an unroll that has
    not come is taken to be as long as the mean of those that have. Every server can always send one.
    """

    def __init__(self, capacity_steps: int, unroll_length: int) -> None:
        self._capacity = capacity_steps
        self._mean_length = float(unroll_length)
        self._peers: dict[bytes, _Peer] = {}

    def joined(self, peer: bytes) -> None:
        """A server said SERVER_HELLO: its count starts at 0, again if need be."""
        self._peers[peer] = _Peer()

    def left(self, peer: bytes) -> None:
        """A server is gone; what it was granted is free again."""
        self._peers.pop(peer, None)

    def received(self, peer: bytes, length: int) -> bool:
        """An unroll came. False where that peer never said SERVER_HELLO."""
        if peer not in self._peers:
            return False
        self._peers[peer].received += 1
        self._mean_length += 0.01 * (length - self._mean_length)
        return True

    def __contains__(self, peer: object) -> bool:
        return peer in self._peers

    def taken(self, peer: bytes) -> int:
        """Unrolls of a living server since its SERVER_HELLO."""
        return self._peers[peer].received

    def grant(self, waiting_steps: int) -> dict[bytes, int]:
        """Total for each server, never lower than before."""
        outstanding = sum(peer.granted - peer.received for peer in self._peers.values())
        room = int((self._capacity - waiting_steps) / max(self._mean_length, 1.0)) - outstanding
        share = max(room, 0) // max(len(self._peers), 1)
        for peer in self._peers.values():
            least = peer.received + 1 if waiting_steps < self._capacity else peer.granted
            peer.granted = max(peer.granted + share, least)
        return {name: peer.granted for name, peer in self._peers.items()}
