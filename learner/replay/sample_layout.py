"""How samples are stored in bytes. Pure: no files.

N samples, D = observation size, A = actions, E = bytes of the ending, K entries of all policy targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.masks import packed_width
from simul.common.protocol.specs import GameSpec


@dataclass(frozen=True)
class SampleLayout:
    """How a sample is stored: observation, packed mask, ending, ids int32 [k], probabilities float32 [k]."""

    spec: GameSpec

    @property
    def observation_bytes(self) -> int:
        """Of one observation."""
        return self.spec.observation_size * self.spec.dtype().itemsize

    @property
    def mask_bytes(self) -> int:
        """Of one packed mask."""
        return packed_width(self.spec.num_actions)

    @property
    def ending_bytes(self) -> int:
        """Of one ending."""
        return sum(self.spec.ending_sizes)

    @property
    def least_bytes(self) -> int:
        """Of a sample without a policy target."""
        return self.observation_bytes + self.mask_bytes + self.ending_bytes

    @property
    def most_bytes(self) -> int:
        """Of a sample whose policy target holds every action."""
        return self.least_bytes + 8 * self.spec.num_actions

    def rows(self, columns: Mapping[str, NDArray[Any]]) -> list[NDArray[np.uint8]]:
        """Each sample's bytes."""
        count = columns["target_count"]
        endings = (columns["ending"],) if self.ending_bytes else ()
        fixed = np.concatenate((_as_bytes(columns["observation"]), columns["mask"], *endings), axis=1)
        ends = np.cumsum(count)
        targets = columns["target_action"].view(np.uint8), columns["target_probability"].view(np.uint8)
        return [
            np.concatenate((fixed[i], *(entries[4 * (end - k) : 4 * end] for entries in targets)))
            for i, (end, k) in enumerate(zip(ends.tolist(), count.tolist()))
        ]

    def columns(self, rows: list[NDArray[np.uint8]]) -> dict[str, NDArray[Any]]:
        """The inverse of `rows`, without outcome and version."""
        seen, fixed = self.observation_bytes, self.least_bytes
        masked = seen + self.mask_bytes
        head = np.stack([row[:fixed] for row in rows])
        middle = [fixed + (len(row) - fixed) // 2 for row in rows]
        ids = np.concatenate([row[fixed:at] for row, at in zip(rows, middle)])
        probabilities = np.concatenate([row[at:] for row, at in zip(rows, middle)])
        return {
            "observation": np.ascontiguousarray(head[:, :seen]).view(self.spec.dtype()),
            "mask": head[:, seen:masked],
            **({"ending": head[:, masked:]} if self.ending_bytes else {}),
            "target_count": np.array([(len(row) - fixed) // 8 for row in rows], np.int32),
            "target_action": ids.view(np.int32),
            "target_probability": probabilities.view(np.float32),
        }


def _as_bytes(rows: NDArray[Any]) -> NDArray[np.uint8]:
    """[N, D] -> uint8 [N, D * itemsize]."""
    return np.ascontiguousarray(rows).view(np.uint8)
