"""Stage and verify weights before they may be swapped in. On any mismatch the old ones stay."""

from __future__ import annotations

from torch import Tensor, nn

from common.errors import WeightsError
from common.nets.weights import bytes_to_state, check_state
from common.nets.weights import fingerprint as fingerprint_of


def stage(data: bytes, fingerprint: str, network: nn.Module) -> dict[str, Tensor]:
    """Verified weights of `network` out of safetensors bytes.

    Raises:
        WeightsError: the bytes are torn, or names or shapes differ, or a value is not finite.
    """
    if fingerprint_of(data) != fingerprint:
        raise WeightsError(f"the fingerprint of {len(data)} bytes differs from the announced one: torn on the way")
    state = bytes_to_state(data)
    check_state(state, network)
    return state
