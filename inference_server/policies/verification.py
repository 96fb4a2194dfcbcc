"""Verify weights before they may be swapped in. On any mismatch the old ones stay."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from simul.common.nets.io import bytes_to_state, check_state, file_to_state
from simul.common.protocol.errors import UnreadableWeightsError, WeightsError
from simul.common.protocol.messages import MOST_VERSION, Weights
from simul.common.protocol.shared_memory import open_sealed
from simul.common.runtime.throttle import Throttle, no_throttle

PIECE_BYTES = 512 * 1024  # hashed between two rests


def verify(
    weights: Weights, data: bytes | NDArray[Any] | None, network: nn.Module, rest: Throttle = no_throttle
) -> dict[str, Tensor]:
    """Weights of `network` out of `data`, uint8 [bytes] as they were announced; None: out of the learner's memory.

    Out of memory nothing is copied: what comes back are views of it.

    Raises:
        UnreadableWeightsError: they do not lie there.
        WeightsError: the bytes are torn, names or shapes differ, a value is not finite, or the version is none.
    """
    if not 0 <= weights.policy_version <= MOST_VERSION:
        raise WeightsError(f"expected a version of 0 to {MOST_VERSION}, got {weights.policy_version}")
    if data is None:
        state = _from_memory(weights)
    else:
        if _fingerprint(np.frombuffer(data, np.uint8).data, rest) != weights.fingerprint:
            raise WeightsError(f"the fingerprint of {len(data)} bytes differs from the announced one: torn on the way")
        state = bytes_to_state(bytes(data))
    rest()
    check_state(state, network)
    rest()
    return state


def _from_memory(weights: Weights) -> dict[str, Tensor]:
    try:
        file = open_sealed(weights.path, weights.file_number)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UnreadableWeightsError(f"the memory cannot be read: {reason}") from None
    try:
        return file_to_state(f"/proc/self/fd/{file}")
    finally:
        os.close(file)


def _fingerprint(data: memoryview, rest: Throttle) -> str:
    digest = hashlib.sha256()
    for start in range(0, len(data), PIECE_BYTES):
        digest.update(data[start : start + PIECE_BYTES])  # other threads run meanwhile
        rest()
    return digest.hexdigest()
