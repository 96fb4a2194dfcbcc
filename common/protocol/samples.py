"""What a searched position teaches: the policy that the search found, and how the game ended."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

NO_ACTIONS: NDArray[np.int32] = np.zeros(0, np.int32)
NO_PROBABILITIES: NDArray[np.float32] = np.zeros(0, np.float32)
NO_ENDING: NDArray[np.uint8] = np.zeros(0, np.uint8)


class Sample(msgspec.Struct, gc=False):
    """One seat's view of one position. D = observation size, A = actions, k = entries of the policy target.

    Attributes:
        observation: wire dtype [D], of the observing seat.
        mask: uint8 [ceil(A / 8)], legal actions as bits, the lowest bit of a byte first (`masks.pack_masks`).
        outcome: what the game gave the observing seat, from -1 to 1.
        policy_version: of the weights that the search asked, the newest where they changed meanwhile.
        actions: int32 [k], legal ids, each once; empty: only the value is learned from this position.
        probabilities: float32 [k], of `actions`; they add up to 1.
        ending: uint8 [E], what the game's end tells of this position, see `GameSpec.ending_planes`.
    """

    observation: NDArray[Any]
    mask: NDArray[np.uint8]
    outcome: float
    policy_version: int
    actions: NDArray[np.int32] = NO_ACTIONS
    probabilities: NDArray[np.float32] = NO_PROBABILITIES
    ending: NDArray[np.uint8] = NO_ENDING

    @property
    def nbytes(self) -> int:
        """Bytes on the wire, about."""
        return self.observation.nbytes + self.mask.nbytes + 8 * len(self.actions) + self.ending.nbytes + 16
