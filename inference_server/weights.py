"""Verify weights before they may be swapped in. On any mismatch the old ones stay."""

from __future__ import annotations

import hashlib
import time

from torch import Tensor, nn

from common.errors import WeightsError
from common.nets.weights import bytes_to_state, check_state

PIECE_BYTES = 512 * 1024
PAUSE_SEC = 300e-6  # after each piece, which takes about as long: on a single core the serving loop goes on


def verify(data: bytes, fingerprint: str, network: nn.Module, *, pause_sec: float = 0.0) -> dict[str, Tensor]:
    """Weights of `network` out of safetensors bytes whose SHA-256 is `fingerprint`.

    Raises:
        WeightsError: the bytes are torn, or names or shapes differ, or a value is not finite.
    """
    digest = hashlib.sha256()
    for start in range(0, len(data), PIECE_BYTES):
        digest.update(memoryview(data)[start : start + PIECE_BYTES])  # other threads run meanwhile
        time.sleep(pause_sec)
    if digest.hexdigest() != fingerprint:
        raise WeightsError(f"the fingerprint of {len(data)} bytes differs from the announced one: torn on the way")
    state = bytes_to_state(data)
    check_state(state, network)
    return state
