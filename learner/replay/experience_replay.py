"""The samples of a run: in memory to draw from, on disk to survive a restart, each message stored once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.learner.io.samples import ReceivedSamples
from simul.learner.replay.buffer import ReplayBuffer
from simul.learner.replay.files import ReplayFiles
from simul.learner.replay.schedule import ReplayWindow

MOST_REMEMBERED = 20_000  # messages known by their number: a client sends one again within seconds


class ExperienceReplay:
    """The learner's main loop owns it.

    Attributes:
        total: samples stored since the run began, those of former lives included.
        notes: sentences for the view; the caller empties the list.
    """

    def __init__(self, buffer: ReplayBuffer, files: ReplayFiles, window: ReplayWindow, seed: int = 0) -> None:
        self.total = 0
        self.notes: list[str] = []
        self._buffer = buffer
        self._files = files
        self._window = window
        self._random = np.random.default_rng(seed)
        self._stored: dict[int, None] = {}  # numbers of the latest messages

    def restore(self) -> None:
        """Fill the buffer with what is on disk."""
        for first, samples in self._files.load(self.notes):
            self._buffer.add(samples)
            self.total = first + samples.length
            self._remember(samples.batch)
        if self.total:
            self.notes.append(f"Resumed with {self._buffer.rows:,} of {self.total:,} samples.")

    def add(self, samples: ReceivedSamples) -> bool:
        """Store the samples of a message. False where it was stored before."""
        if samples.batch in self._stored:
            return False
        if failure := self._files.append(self.total, samples):
            self.notes.append(failure)
        self._buffer.add(samples)
        self.total += samples.length
        self._remember(samples.batch)
        return True

    @property
    def held(self) -> int:
        """Samples that can be drawn: the newest ones, as many as the window says and memory holds."""
        return min(self._buffer.rows, self._window.size(self.total))

    def draw(self, count: int) -> NDArray[np.int64]:
        """Numbers of samples [count], uniform over those held, with repetition; valid until the next `add`."""
        added = self._buffer.added
        return self._random.integers(added - self.held, added, count)

    def get(self, numbers: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """Columns of samples, as `messages.Samples` declares them."""
        return self._buffer.get(numbers)

    def figures(self) -> dict[str, float]:
        """Figures for a report; docs/metrics.md explains each."""
        return {
            "total": self.total, "held": self.held,
            "memory_bytes": self._buffer.used_bytes, "disk_bytes": self._files.used_bytes,
        }  # fmt: skip

    def close(self) -> None:
        """Close the files."""
        self._files.close()

    def _remember(self, batch: int) -> None:
        self._stored[batch] = None
        if len(self._stored) > MOST_REMEMBERED:
            del self._stored[next(iter(self._stored))]
