"""Layout of unrolls in memory shared by server and learner: one table per tensor, [places, ...], concatenated.

T = the unroll length, D = observation size, A = actions, S = state size, K = labels of a step; see
`simul.common.protocol.messages.Unroll`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.masks import stored_width
from simul.common.protocol.shared_memory import ALIGNMENT
from simul.common.protocol.specs import GameSpec

Tables = dict[str, NDArray[Any]]
WITH_BOOTSTRAP = "observation", "mask", "value"  # length + 1 rows of an unroll are filled
STEPS = "action", "log_prob", "reward", "policy_version", "label"  # `length` rows


@dataclass(frozen=True)
class UnrollLayout:
    """Tables of a game's unrolls; `serial` int64 [places] identifies the unroll at each place."""

    spec: GameSpec
    unroll_length: int
    state_size: int

    def shapes(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shape of one place and dtype, by table."""
        rows, labels = self.unroll_length + 1, self.spec.opponent_labels
        return {
            "serial": ((), np.dtype(np.int64)),
            "observation": ((rows, self.spec.observation_size), self.spec.dtype()),
            "mask": ((rows, stored_width(self.spec.num_actions)), np.dtype(np.uint8)),
            "action": ((rows,), np.dtype(np.int32)),
            "log_prob": ((rows,), np.dtype(np.float32)),
            "value": ((rows,), np.dtype(np.float32)),
            "reward": ((rows,), np.dtype(np.float32)),
            "policy_version": ((rows,), np.dtype(np.int64)),
            "state": ((self.state_size,), np.dtype(np.float32)),
            **({"label": ((rows, labels), np.dtype(np.int16))} if labels else {}),
        }

    @property
    def place_bytes(self) -> int:
        """Bytes of one place in all tables."""
        return sum(math.prod(shape) * dtype.itemsize for shape, dtype in self.shapes().values())

    def size(self, places: int) -> int:
        """Bytes of a memory with `places` places."""
        tables = (math.prod(shape) * dtype.itemsize * places for shape, dtype in self.shapes().values())
        return ALIGNMENT + sum(map(_aligned, tables))

    def tables(self, memory: Any, places: int) -> Tables:
        """Views of a buffer of `size(places)` bytes, whose first ALIGNMENT bytes hold the nonce."""
        found: Tables = {}
        start = ALIGNMENT
        for name, (shape, dtype) in self.shapes().items():
            count = places * math.prod(shape)
            found[name] = np.frombuffer(memory, dtype, count, start).reshape(places, *shape)
            start += _aligned(count * dtype.itemsize)
        return found


def unroll_at(tables: Tables, place: int, length: int) -> Tables:
    """Views of the tensors of an unroll of `length` steps, as `Unroll` declares them."""
    return {
        **{name: tables[name][place, : length + 1] for name in WITH_BOOTSTRAP},
        **{name: tables[name][place, :length] for name in STEPS if name in tables},
        "state": tables["state"][place],
    }


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
