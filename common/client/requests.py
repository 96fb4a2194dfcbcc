"""EVALUATE and SAMPLES that the server has not answered in full: kept as they were sent, to be sent again."""

from __future__ import annotations

import math
from typing import Generic, TypeVar

import msgspec

from simul.common.protocol.codec import Tensors
from simul.common.protocol.messages import Evaluate, Samples


class PendingRequest(msgspec.Struct):
    """A message and its tensors. Times in seconds."""

    message: Evaluate | Samples
    tensors: Tensors
    sent_at: float = -math.inf
    due_at: float = math.inf  # time of the retry after a refusal


P = TypeVar("P", bound=PendingRequest)


class PendingRequests(Generic[P]):
    """Messages by id. Pure: time is an argument, in seconds."""

    def __init__(self) -> None:
        self._pending: dict[int, P] = {}

    def __contains__(self, number: object) -> bool:
        return number in self._pending

    def __len__(self) -> int:
        return len(self._pending)

    def mark_sent(self, number: int, now: float) -> P:
        """Note that the message `number` is sent at `now`. Returns it; it has the same id each time."""
        pending = self._pending[number]
        pending.sent_at, pending.due_at = now, math.inf
        return pending

    def defer(self, number: int, until: float) -> None:
        """Schedule a retry at `until`; the message is not overdue before."""
        self._pending[number].sent_at, self._pending[number].due_at = math.inf, until

    def due(self, now: float) -> list[int]:
        """Ids of deferred messages that are due."""
        return [number for number, pending in self._pending.items() if pending.due_at <= now]

    def overdue(self, older_than: float) -> list[int]:
        """Ids of messages sent before `older_than`."""
        return [number for number, pending in self._pending.items() if pending.sent_at <= older_than]
