"""Which rows go into the next batch. Pure: no sockets, no torch; time is an argument.

Work-conserving: when the device is free, take what is there; while it is busy, rows pile up. With
`server.batching: fill` the batcher waits a moment for clients that are about to return, where that answers more rows a
second (see `batch_wait.py`).
A batch is of one policy; the policy whose oldest row waited longest goes first, so none starves. Every client with rows
in a queue gets the same share of a batch: first come, first served would let one client that floods fill batch after
batch. What one client leaves free the others get.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from simul.inference_server.batching.batch_wait import BatchWait, WaitAutotune
from simul.inference_server.sessions.clients import Client


class Portion(Protocol):
    """Rows of one message; its length is their number."""

    arrived_at: float

    @property
    def client(self) -> Hashable:
        """The client that sent them."""

    def __len__(self) -> int: ...

    def pick(self, which: slice) -> Self:
        """A portion with only these rows."""


P = TypeVar("P", bound=Portion)


class FairQueue(Generic[P]):
    """FIFO for each client, round-robin between clients."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, deque[P]] = {}  # the client whose turn it is comes first

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __iter__(self) -> Iterator[P]:
        for queue in self._queues.values():
            yield from queue

    @property
    def oldest(self) -> float:
        """Arrival time of the portion that waits longest."""
        return min(queue[0].arrived_at for queue in self._queues.values())

    def append(self, portion: P) -> None:
        """Queue a portion behind those of its client."""
        self._queues.setdefault(portion.client, deque()).append(portion)

    def remove(self, unwanted: Callable[[P], bool]) -> list[P]:
        """Take out the portions that are `unwanted`; the turns of the clients stay."""
        removed = [portion for portion in self if unwanted(portion)]
        for client in {portion.client for portion in removed}:
            kept = deque(portion for portion in self._queues[client] if not unwanted(portion))
            if kept:
                self._queues[client] = kept
            else:
                del self._queues[client]
        return removed

    def take_rows(self, room: int) -> list[P]:
        """Dequeue at most `room` rows, equal shares; clients that got some go to the back of the rotation."""
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


@dataclass(eq=False, slots=True)
class Chunk:
    """Admitted rows of one STEP message, of one policy, all recorded or all not.

    observation: wire dtype [N, D] and mask: uint8 [N, A] belong to the whole message; `rows` int64 [M] index into
    them. slots, numbers: int64 [M], the rows' sessions and those slots' generations; redo: bool [M].
    """

    client: Client
    message: int
    policy: str
    recorded: bool
    arrived_at: float
    observation: NDArray[Any]
    mask: NDArray[Any]
    rows: NDArray[np.int64]
    slots: NDArray[np.int64]
    numbers: NDArray[np.int64]
    redo: NDArray[np.bool_]
    deadline: float = math.inf  # rows that wait until then are refused
    unread: bool = False  # `observation` lies where its client can still write: the copy of a row is checked instead

    def __len__(self) -> int:
        return len(self.rows)

    def pick(self, which: slice | NDArray[np.bool_]) -> Chunk:
        """A portion with only these rows."""
        return Chunk(
            self.client, self.message, self.policy, self.recorded, self.arrived_at, self.observation, self.mask,
            self.rows[which], self.slots[which], self.numbers[which], self.redo[which],
            self.deadline, self.unread,
        )  # fmt: skip


class Batcher:
    """Queues of chunks, one for each (policy, recorded)."""

    def __init__(self, max_batch: int, batch_wait: BatchWait | None = None) -> None:
        self.max_batch = max_batch
        self.waiting = 0  # rows
        self.next_deadline = math.inf  # no row that waits is late before
        self._batch_wait = batch_wait
        self._autotune = WaitAutotune()
        self._known: WeakSet[Client] = WeakSet()
        self._queues: dict[tuple[str, bool], FairQueue[Chunk]] = {}

    def queue_chunk(self, chunk: Chunk) -> None:
        """Queue admitted rows."""
        if self._batch_wait is not None:
            if chunk.client not in self._known:  # what was found out was about others
                self._known.add(chunk.client)
                self._autotune = WaitAutotune()
            self._batch_wait.client_returned(chunk.client, chunk.arrived_at, first=not self.waiting)
        self.next_deadline = min(self.next_deadline, chunk.deadline)
        self._queues.setdefault((chunk.policy, chunk.recorded), FairQueue()).append(chunk)
        self.waiting += len(chunk)

    def batch_answered(self, batch: list[Chunk], forward_sec: float, now: float) -> None:
        """Count an answered batch."""
        if self._batch_wait is not None:
            self._batch_wait.batch_answered((chunk.client for chunk in batch), forward_sec, now)
            self._autotune.batch_answered(sum(map(len, batch)), now)

    def wait_sec(self, now: float) -> float:
        """Seconds that the queued rows wait for more; 0: batch them now."""
        if self._batch_wait is None or not self._autotune.waits or not 0 < self.waiting < self.max_batch:
            return 0.0
        return self._batch_wait.wait_sec(now)

    def take_expired(self, now: float) -> list[Chunk]:
        """Remove the rows whose deadline has passed, also those that wait for a full learner."""
        if now < self.next_deadline:
            return []
        late = [chunk for queue in self._queues.values() for chunk in queue.remove(lambda c: c.deadline <= now)]
        self.waiting -= sum(map(len, late))
        self.next_deadline = min((c.deadline for queue in self._queues.values() for c in queue), default=math.inf)
        return late

    def take_batch(self, *, training_open: bool = True) -> list[Chunk]:
        """The next batch: chunks of one policy, at most `max_batch` rows together; empty when nothing may go.

        `training_open` False holds recorded rows back (a living learner is full); the others never wait.
        """
        open_queues = {key: q for key, q in self._queues.items() if q and (training_open or not key[1])}
        if not open_queues:
            return []
        policy = min(open_queues, key=lambda key: open_queues[key].oldest)[0]
        queues = [q for key, q in open_queues.items() if key[0] == policy]
        queues.sort(key=lambda q: q.oldest)
        batch: list[Chunk] = []
        room = self.max_batch
        for queue in queues:
            taken = queue.take_rows(room)
            room -= sum(map(len, taken))
            batch += taken
        self.waiting -= self.max_batch - room
        return batch
