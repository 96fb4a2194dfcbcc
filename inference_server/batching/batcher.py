"""Which rows go into the next batch. Pure: no sockets, no torch; time is an argument.

Work-conserving: when the device is free, take what is there; while it is busy, rows pile up. With `fill` it waits a
moment for clients that are about to be back (see `batch_wait.py`), where that answers more rows a second
(see `wait_autotune.py`).
A batch is of one policy; the policy whose oldest row waited longest goes first, so none starves. Clients share a
batch equally, see `simul.inference_server.batching.fair_queue`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from simul.inference_server.batching.batch_wait import Fill
from simul.inference_server.batching.fair_queue import FairQueue
from simul.inference_server.batching.wait_autotune import Trials
from simul.inference_server.frontend.clients import Client


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
    unread: bool = False  # `observation` lies where its client can still write: whoever copies a row judges the copy

    def __len__(self) -> int:
        return len(self.rows)

    def pick(self, which: slice | NDArray[np.bool_]) -> Chunk:
        """The same message, these rows only."""
        return Chunk(
            self.client, self.message, self.policy, self.recorded, self.arrived_at, self.observation, self.mask,
            self.rows[which], self.slots[which], self.numbers[which], self.redo[which],
            self.deadline, self.unread,
        )  # fmt: skip


class Batcher:
    """Queues of chunks, one for each (policy, recorded)."""

    def __init__(self, max_batch: int, fill: Fill | None = None) -> None:
        self.max_batch = max_batch
        self.waiting = 0  # rows
        self.next_deadline = math.inf  # no row that waits is late before
        self._fill = fill
        self._trials = Trials()
        self._known: WeakSet[Client] = WeakSet()
        self._queues: dict[tuple[str, bool], FairQueue[Chunk]] = {}

    def add(self, chunk: Chunk) -> None:
        """Queue admitted rows."""
        if self._fill is not None:
            if chunk.client not in self._known:  # what was found out was about others
                self._known.add(chunk.client)
                self._trials = Trials()
            self._fill.back(chunk.client, chunk.arrived_at, first=not self.waiting)
        self.next_deadline = min(self.next_deadline, chunk.deadline)
        self._queues.setdefault((chunk.policy, chunk.recorded), FairQueue()).append(chunk)
        self.waiting += len(chunk)

    def replied(self, batch: list[Chunk], forward_sec: float, now: float) -> None:
        """A batch was answered."""
        if self._fill is not None:
            self._fill.replied((chunk.client for chunk in batch), forward_sec, now)
            self._trials.answered(sum(map(len, batch)), now)

    def patience(self, now: float) -> float:
        """Seconds that the rows that are there wait for others; 0: they do not."""
        if self._fill is None or not self._trials.waits or not 0 < self.waiting < self.max_batch:
            return 0.0
        return self._fill.patience(now)

    def expire(self, now: float) -> list[Chunk]:
        """Take out the rows whose deadline is over, also those that wait for a full learner."""
        if now < self.next_deadline:
            return []
        late = [chunk for queue in self._queues.values() for chunk in queue.remove(lambda c: c.deadline <= now)]
        self.waiting -= sum(map(len, late))
        self.next_deadline = min((c.deadline for queue in self._queues.values() for c in queue), default=math.inf)
        return late

    def take(self, *, training_open: bool = True) -> list[Chunk]:
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
            taken = queue.take(room)
            room -= sum(map(len, taken))
            batch += taken
        self.waiting -= self.max_batch - room
        return batch
