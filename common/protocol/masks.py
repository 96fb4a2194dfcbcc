"""Action masks as bits: action a is bit a % 8 (the lowest is 0) of byte a // 8. For games with many actions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PACKED_FROM = 1024  # from so many actions on, recorded unrolls and STEP messages of `InferenceClient` hold bits


def packed_width(num_actions: int) -> int:
    """Bytes of a packed mask."""
    return -(-num_actions // 8)


def stored_width(num_actions: int) -> int:
    """Bytes of a mask in an unroll: one for each action of a small game, else packed."""
    return num_actions if num_actions < PACKED_FROM else packed_width(num_actions)


def pack_masks(mask: NDArray[np.uint8] | NDArray[np.bool_]) -> NDArray[np.uint8]:
    """uint8 [..., A], 1 = legal -> uint8 [..., ceil(A / 8)]."""
    return np.packbits(mask, axis=-1, bitorder="little")


def unpack_masks(bits: NDArray[np.uint8], num_actions: int) -> NDArray[np.uint8]:
    """The reverse; bits beyond the last action are ignored."""
    return np.unpackbits(bits, axis=-1, count=num_actions, bitorder="little")


def no_bits_beyond(bits: NDArray[np.uint8], num_actions: int) -> NDArray[np.bool_]:
    """bool [...]: the bits behind those of the last action are 0."""
    found: NDArray[np.bool_] = bits[..., -1] <= 0xFF >> -num_actions % 8
    return found


def list_legal(mask: NDArray[np.uint8] | NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The legal actions of each row, for work on those alone. mask: [B, A], 1 = legal.

    Returns:
        ids: int64 [B, M], ascending in each row, then action 0; M is the most legal actions of a row.
        counts: int64 [B], legal actions of each row.
    """
    rows, num_actions = mask.shape
    legal = mask.view(np.bool_)  # bytes that are not 0 are found several times faster so
    counts = np.count_nonzero(legal, axis=1).astype(np.int64)
    ids = np.zeros((rows, int(counts.max(initial=0))), np.int64)
    used = np.arange(ids.shape[1]) < counts[:, None]
    ids[used] = np.flatnonzero(legal) - np.repeat(np.arange(rows) * num_actions, counts)
    return ids, counts
