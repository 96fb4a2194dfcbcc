"""Rows of many clients in one queue. Pure: no sockets, no torch, no time.

First come, first served would let one client that floods fill batch after batch while the others' few rows wait
behind. Here every client that has rows waiting gets the same share of a batch; what one leaves free the others get.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, Protocol, Self, TypeVar


class Portion(Protocol):
    """Rows of one message; its length is their number."""

    arrived_at: float

    @property
    def client(self) -> Hashable:
        """Whose they are."""

    def __len__(self) -> int: ...

    def pick(self, which: slice) -> Self:
        """The same message, these rows only."""


P = TypeVar("P", bound=Portion)


class FairQueue(Generic[P]):
    """In order of arrival for each client, in turns between clients."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, deque[P]] = {}  # the client whose turn it is comes first

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __iter__(self) -> Iterator[P]:
        for queue in self._queues.values():
            yield from queue

    @property
    def oldest(self) -> float:
        """When the portion that waits longest arrived."""
        return min(queue[0].arrived_at for queue in self._queues.values())

    def append(self, portion: P) -> None:
        """Queue a portion behind those of its client."""
        self._queues.setdefault(portion.client, deque()).append(portion)

    def remove(self, unwanted: Callable[[P], bool]) -> list[P]:
        """Take out the portions that are `unwanted`; nobody's turn changes."""
        removed = [portion for portion in self if unwanted(portion)]
        for client in {portion.client for portion in removed}:
            kept = deque(portion for portion in self._queues[client] if not unwanted(portion))
            if kept:
                self._queues[client] = kept
            else:
                del self._queues[client]
        return removed

    def take(self, room: int) -> list[P]:
        """At most `room` rows; clients that got some stand at the end of the line."""
        taken: list[P] = []
        while room and self._queues:
            share = max(1, room // len(self._queues))
            for client in list(self._queues):
                room -= self._take_of(client, min(share, room), taken)
                if not room:
                    break
        return taken

    def _take_of(self, client: Hashable, most: int, taken: list[P]) -> int:
        queue, left = self._queues.pop(client), most
        while queue and left:
            portion = queue.popleft()
            if len(portion) > left:
                queue.appendleft(portion.pick(slice(left, None)))
                portion = portion.pick(slice(left))
            left -= len(portion)
            taken.append(portion)
        if queue:
            self._queues[client] = queue
        return most - left
