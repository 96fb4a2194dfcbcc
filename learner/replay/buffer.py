"""The replay buffer in memory: samples of any length in one preallocated ring of bytes, the oldest overwritten."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import ConfigError
from simul.learner.io.samples import ReceivedSamples
from simul.learner.replay.sample_layout import SampleLayout

INDEX_BYTES = 24  # of one sample: start, size, outcome, policy_version


class ReplayBuffer:
    """At most `memory_bytes`, its index included, whatever the samples hold. Samples are numbered from 0 on.

    Attributes:
        added: samples added so far; the newest has the number added - 1.
        rows: samples held, the newest ones.
    """

    def __init__(self, layout: SampleLayout, memory_bytes: int, least_rows: int) -> None:
        """Raises ConfigError where `least_rows` samples might not fit."""
        capacity = memory_bytes // (layout.least_bytes + INDEX_BYTES)
        ring = memory_bytes - capacity * INDEX_BYTES
        most = max(ring // layout.most_bytes - 1, 0)  # the end of the ring may stay empty
        if most < least_rows:
            need = -(-(least_rows + 1) * layout.most_bytes * memory_bytes // (max(ring, 1) * 2**20))
            raise ConfigError(
                f"replay.memory_mb: {memory_bytes // 2**20} MiB hold {most:,} samples of {layout.spec.name} where a "
                f"policy target names every action; expected room for replay.min_samples = {least_rows:,}. Set at "
                f"least {need}, or lower replay.min_samples."
            )
        self.added = self.rows = 0
        self._layout = layout
        self._capacity = capacity
        self._bytes = np.empty(ring, np.uint8)
        self._start = np.empty(self._capacity, np.int64)
        self._size = np.empty(self._capacity, np.int32)
        self._outcome = np.empty(self._capacity, np.float32)
        self._version = np.empty(self._capacity, np.int64)
        self._head = 0  # where the next sample begins

    @property
    def used_bytes(self) -> int:
        """Bytes of the samples held."""
        slots = np.arange(self.added - self.rows, self.added) % self._capacity
        return int(self._size[slots].sum()) + self.rows * INDEX_BYTES

    def add(self, samples: ReceivedSamples) -> None:
        """Append samples; the oldest are overwritten where there is no room."""
        outcome, version = samples.columns["outcome"], samples.columns["policy_version"]
        for i, row in enumerate(self._layout.rows(samples.columns)):
            start = self._make_room(len(row))
            slot = self.added % self._capacity
            self._bytes[start : start + len(row)] = row
            self._start[slot], self._size[slot] = start, len(row)
            self._outcome[slot], self._version[slot] = outcome[i], version[i]
            self.added += 1
            self.rows += 1

    def get(self, numbers: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Columns of the samples with these numbers, as `messages.Samples` declares them."""
        slots = numbers % self._capacity
        places = zip(self._start[slots].tolist(), self._size[slots].tolist())
        columns = self._layout.columns([self._bytes[start : start + size] for start, size in places])
        return {**columns, "outcome": self._outcome[slots], "policy_version": self._version[slots]}

    def _make_room(self, size: int) -> int:
        """The start of `size` free bytes in a row; what lies there is given up, oldest first."""
        if self._head + size > len(self._bytes):  # the rest of the ring is too short: it stays empty this time
            self._give_up_from(self._head, len(self._bytes))
            self._head = 0
        self._give_up_from(self._head, self._head + size)
        if self.rows == self._capacity:
            self.rows -= 1
        start, self._head = self._head, self._head + size
        return start

    def _give_up_from(self, low: int, high: int) -> None:
        """Give up the oldest samples while they begin within [low, high)."""
        while self.rows and low <= self._start[(self.added - self.rows) % self._capacity] < high:
            self.rows -= 1
