"""What servers have sent and the main loop has not taken yet: the I/O thread puts, the main loop takes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from simul.learner.io.samples import ReceivedSamples
from simul.learner.io.shared_state import SharedState
from simul.learner.io.unrolls import ReceivedUnroll

Item = TypeVar("Item", ReceivedUnroll, ReceivedSamples)


@dataclass
class ReceiveCounts:
    """Unrolls, or samples, of admitted servers since process start. received = taken + dropped + waiting."""

    received: int = 0
    taken: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    dropped_rows: int = 0  # where known


class ReceiveQueue(Generic[Item]):
    """A row is a step of an unroll, or a sample. What is counted is unrolls, or samples.

    Attributes:
        waiting_rows: those in the queue.
    """

    def __init__(self, shared: SharedState) -> None:
        self.counts = ReceiveCounts()
        self.waiting_rows = 0
        self._shared = shared
        self._queue: deque[Item] = deque()

    # I/O thread

    def put(self, item: Item) -> None:
        """Add what was received and checked."""
        with self._shared.changed:
            self.counts.received += self._count(item.length)
            self._queue.append(item)
            self.waiting_rows += item.length
            self._shared.changed.notify_all()

    def drop(self, cause: str, reason: str, rows: int) -> None:
        """Count what was received and is not learned from; the first time of each cause, an event says why."""
        with self._shared.changed:
            self.counts.received += self._count(rows)
            if not self.counts.dropped[cause]:
                self._shared.events.append(f"{self._describe(rows)} dropped as {cause}: {reason}.")
            self._count_dropped(cause, self._count(rows), rows)

    # Main loop

    def take(self, rows: int) -> list[Item]:
        """Whole items of at least `rows` rows together, of which as many wait, oldest first; [] for 0 rows."""
        batch: list[Item] = []
        with self._shared.changed:
            taken = 0
            while taken < rows:
                batch.append(self._queue.popleft())
                taken += batch[-1].length
            self.waiting_rows -= taken
            self.counts.taken += sum(self._count(item.length) for item in batch)
        self._shared.wake()
        return batch

    def mark_dropped(self, items: Sequence[Item], cause: str) -> None:
        """Count what was taken as dropped: nothing was learned from it."""
        with self._shared.changed:
            count = sum(self._count(item.length) for item in items)
            self.counts.taken -= count
            self._count_dropped(cause, count, sum(item.length for item in items))

    def account(self) -> dict[str, Any]:
        """How many were received, wait and were dropped, at one moment; the rest were taken."""
        with self._shared.changed:
            waiting = sum(self._count(item.length) for item in self._queue)
            return {"received": self.counts.received, "waiting": waiting, "dropped": dict(self.counts.dropped)}

    def _count_dropped(self, cause: str, count: int, rows: int) -> None:
        self.counts.dropped[cause] += count
        self.counts.dropped_rows += rows

    def _count(self, rows: int) -> int:
        """What an item of so many rows counts for."""
        raise NotImplementedError

    def _describe(self, rows: int) -> str:
        """Subject and verb of a sentence about an item of so many rows."""
        raise NotImplementedError


class UnrollQueue(ReceiveQueue[ReceivedUnroll]):
    """Unrolls that wait to be learned from. Rows are steps."""

    def take_batch(self, steps: int, timeout_sec: float, version: int, max_lag: int) -> list[ReceivedUnroll]:
        """Whole unrolls of at least `steps` steps together, oldest first; [] after `timeout_sec`.

        Unrolls whose oldest step is more than `max_lag` versions behind `version` are dropped as `stale`.
        """
        if self.wait_for_steps(steps, timeout_sec, version, max_lag) < steps:
            return []
        return self.take(steps)

    def wait_for_steps(self, steps: int, timeout_sec: float, version: int, max_lag: int) -> int:
        """How many steps wait, once there are `steps`, or after `timeout_sec`; stale unrolls are dropped."""
        with self._shared.changed:
            self._shared.wait_for(lambda: self.waiting_rows >= steps, timeout_sec)
            self._drop_stale(version - max_lag)
            return self.waiting_rows

    def _drop_stale(self, oldest: int) -> None:
        kept = deque(unroll for unroll in self._queue if unroll.oldest_version >= oldest)
        if len(kept) == len(self._queue):
            return
        steps = sum(unroll.length for unroll in kept)
        self._count_dropped("stale", len(self._queue) - len(kept), self.waiting_rows - steps)
        self._queue, self.waiting_rows = kept, steps

    def _count(self, rows: int) -> int:
        return 1

    def _describe(self, rows: int) -> str:
        return "An unroll was"


class SampleQueue(ReceiveQueue[ReceivedSamples]):
    """Samples that wait to be stored. Rows are samples."""

    def take_all(self, timeout_sec: float) -> list[ReceivedSamples]:
        """All samples received, in order, which count as stored from now on; [] after `timeout_sec`."""
        with self._shared.changed:
            self._shared.wait_for(lambda: self._queue, timeout_sec)
        return self.take(self.waiting_rows)

    def account(self) -> dict[str, Any]:
        """Also how many were stored."""
        with self._shared.changed:
            return {**super().account(), "stored": self.counts.taken}

    def _count(self, rows: int) -> int:
        return rows

    def _describe(self, rows: int) -> str:
        return f"{rows} samples were"
