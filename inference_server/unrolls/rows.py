"""The loops that write steps into the unroll tables, row for row: compiled. Observations are bytes of any dtype."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.inference_server.engine.numba_helpers import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    LINE,
    STREAMS,
    UINT8,
    column,
    compiled,
    read,
    stream_line,
)


@compiled(read(INT64), read(INT64), read(FLOAT32), read(INT64), column(FLOAT32, 2))
def add_rewards(
    rows: NDArray[np.int64],
    of_row: NDArray[np.int64],
    earned: NDArray[np.float32],
    filled: NDArray[np.int64],
    reward: NDArray[np.float32],
) -> None:
    """Add to the reward of each row's last step what it `earned`, float32 [B]; -1 stands for no row."""
    for i in range(len(rows)):
        if rows[i] >= 0:  # a row without steps: into the place behind the last
            reward[of_row[rows[i]], filled[rows[i]] - 1] += earned[i]


@compiled(
    read(INT64), read(INT64), read(BOOL), read(UINT8, 2), read(UINT8, 2), read(INT32), read(FLOAT32), read(FLOAT32),
    INT64, column(INT64), column(UINT8, 3), column(UINT8, 3), column(INT32, 2), column(FLOAT32, 2), column(FLOAT32, 2),
    column(INT64, 2), column(FLOAT32, 2),
)  # fmt: skip
def append_rows(
    rows: NDArray[np.int64],
    of_row: NDArray[np.int64],
    redo: NDArray[np.bool_],
    observation: NDArray[np.uint8],
    mask: NDArray[np.uint8],
    action: NDArray[np.int32],
    log_prob: NDArray[np.float32],
    value: NDArray[np.float32],
    version: int,
    filled: NDArray[np.int64],
    observations: NDArray[np.uint8],
    masks: NDArray[np.uint8],
    actions: NDArray[np.int32],
    log_probs: NDArray[np.float32],
    values: NDArray[np.float32],
    versions: NDArray[np.int64],
    rewards: NDArray[np.float32],
) -> int:
    """Write a step of each row, arrays [B, ...], behind its last one, or over it where `redo`; how many are new."""
    new, size = 0, observation.shape[1]
    for i in range(len(rows)):
        place, at = of_row[rows[i]], filled[rows[i]]
        if redo[i]:
            at -= 1
        else:
            new += 1
        to = observations.ctypes.data + (place * observations.shape[1] + at) * size
        if STREAMS and to % LINE == 0 and size % LINE == 0:  # half the time, and the weights stay in the cache
            for offset in range(0, size, LINE):
                stream_line(to + offset, observation.ctypes.data + i * size + offset)
        else:
            for j in range(size):  # a slice would take twice as long
                observations[place, at, j] = observation[i, j]
        for j in range(mask.shape[1]):
            masks[place, at, j] = mask[i, j]
        actions[place, at] = action[i]
        log_probs[place, at] = log_prob[i]
        values[place, at] = value[i]
        versions[place, at] = version
        rewards[place, at] = 0.0
        filled[rows[i]] = at + 1
    return new
