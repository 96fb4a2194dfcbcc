"""Gumbel noise of a batch, compiled: `rng.gumbel` for the sessions of some slots, written in place."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from simul.inference_server.engine.numba_helpers import BOOL, FLOAT32, INT64, UINT64, column, compiled, read

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_S27, _S30, _S31, _S41 = (np.uint64(n) for n in (27, 30, 31, 41))
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ONE, _HALF, _SCALE = np.uint64(1), np.float32(0.5), np.float32(2.0**-23)


@compiled(UINT64)
def _mix(x: np.uint64) -> np.uint64:
    x ^= x >> _S30
    x *= _M1
    x ^= x >> _S27
    x *= _M2
    return x ^ (x >> _S31)


@compiled(read(INT64), read(UINT64), read(INT64, 2), read(INT64), read(BOOL), read(BOOL, 2), column(FLOAT32, 2))
def draw_gumbel(
    slots: NDArray[np.int64],
    noise_key: NDArray[np.uint64],
    due: NDArray[np.int64],
    attempt: NDArray[np.int64],
    greedy: NDArray[np.bool_],
    legal: NDArray[np.bool_],
    noise: NDArray[np.float32],
) -> None:
    """Write standard Gumbel noise for the legal actions of steps that wait, zeros where they are greedy.

    slots: int64 [B]; noise_key, due, attempt, greedy: columns of `simul.inference_server.sessions.table.SessionTable`;
    legal: bool [B or more, A]; noise: float32 [B or more, A], its first B rows are written.
    """
    actions = noise.shape[1]
    for row in range(len(slots)):
        slot = slots[row]
        if greedy[slot]:
            noise[row] = 0.0
            continue
        step = np.uint64(due[slot, 3])  # the step that is due after the one that waits
        key = _mix(_mix(noise_key[slot] + _GOLDEN * step) + np.uint64(attempt[slot]))
        for action in range(actions):
            if not legal[row, action]:
                continue
            bits = _mix(key + _GOLDEN * (np.uint64(action) + _ONE)) >> _S41  # 23: float32 holds (bits + 0.5) exactly
            draw = (np.float32(bits) + _HALF) * _SCALE
            noise[row, action] = -math.log(-math.log(draw))
