"""Copies the rows of a message into a batch, and finds the copies that are not finite, in one pass over memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import BOOL, INT64, UINT8, UINT16, UINT32, column, compiled, read
from simul.common.runtime.finite import FLOAT16_EXPONENT, FLOAT32_EXPONENT


def gather_rows(
    observation: NDArray[Any],
    mask: NDArray[np.uint8],
    rows: NDArray[np.int64],
    to_observation: NDArray[Any],
    to_mask: NDArray[np.uint8],
    finite: NDArray[np.bool_],
) -> None:
    """Copy the `rows` int64 [M] of `observation` [N, D] and `mask` uint8 [N, A]; N > every row.

    to_observation, to_mask: [M, ...], and finite bool [M], True where the copied observation is: written.
    """
    if observation.dtype == np.uint8:  # every whole number is finite
        observation.take(rows, axis=0, out=to_observation, mode="clip")
        mask.take(rows, axis=0, out=to_mask, mode="clip")
        finite[:] = True
        return
    bits, exponent, gather = _GATHER[observation.dtype]
    gather(observation.view(bits), exponent, mask, rows, to_observation.view(bits), to_mask, finite)


def _gather(
    bits: NDArray[Any],
    exponent: int,
    mask: NDArray[np.uint8],
    rows: NDArray[np.int64],
    to_bits: NDArray[Any],
    to_mask: NDArray[np.uint8],
    finite: NDArray[np.bool_],
) -> None:
    """`bits`: the observations; NaN and infinities have every bit of `exponent`. Each number is read once."""
    for i in range(len(rows)):
        row, wrong = rows[i], 0
        for j in range(to_bits.shape[1]):
            number = bits[row, j]
            to_bits[i, j] = number
            wrong |= (number & exponent) == exponent
        for j in range(to_mask.shape[1]):
            to_mask[i, j] = mask[row, j]
        finite[i] = not wrong


_MASKS = read(UINT8, 2), read(INT64)
_GATHER = {  # by dtype of the observation: as what its bits are seen, which of them are the exponent's, the loop
    np.dtype(np.float16): (
        np.uint16, FLOAT16_EXPONENT,
        compiled(read(UINT16, 2), UINT16, *_MASKS, column(UINT16, 2), column(UINT8, 2), column(BOOL))(_gather),
    ),
    np.dtype(np.float32): (
        np.uint32, FLOAT32_EXPONENT,
        compiled(read(UINT32, 2), UINT32, *_MASKS, column(UINT32, 2), column(UINT8, 2), column(BOOL))(_gather),
    ),
}  # fmt: skip
