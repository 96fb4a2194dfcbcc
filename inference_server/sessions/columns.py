"""The columns of the session table, and compiled loops over them.

One entry a slot, so that a whole message or batch is a handful of numpy operations. S is `max_sessions`; slot S, also
called -1, is nobody's: seats without a session point to it, and no row ever matches it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.inference_server.engine.numba_helpers import BOOL, FLOAT32, FLOAT64, INT32, INT64, column, compiled, read
from simul.inference_server.sessions.rules import WAITING


class SessionColumns:
    """What is known of every session; arrays [S + 1]."""

    def __init__(self, max_sessions: int) -> None:
        n = max_sessions + 1
        self.due = np.full((n, 5), WAITING)  # the ordinary next row: env, seat, episode, step, attempt 0 or WAITING
        self.number = np.zeros(n, np.int64)  # generation of the slot, 0: free
        self.attempt = np.zeros(n, np.int64)  # the last admitted one; above 0 it is a REDO
        self.expired = np.zeros(n, np.bool_)  # the row that waited was refused at its deadline: it may be sent again
        self.temperature = np.ones(n, np.float32)
        self.group = np.zeros(n, np.int64)  # 2 * number of the policy + recorded
        self.unroll_row = np.full(n, -1)  # row of the unroll buffers, -1: not recorded
        self.greedy = np.zeros(n, np.bool_)
        self.noise_key = np.zeros(n, np.uint64)
        self.touched_at = np.zeros(n)
        self.action = np.zeros(n, np.int32)  # the last reply: action, log_prob, value, version
        self.log_prob = np.zeros(n, np.float32)
        self.value = np.zeros(n, np.float32)
        self.version = np.zeros(n, np.int64)
        self._newest = np.zeros(n, np.int64)  # state row after the last step; the row of zeros before the first
        self._spare = np.zeros(n, np.int64)  # state row that the next step writes


@compiled(
    read(INT64, 2), read(BOOL), read(INT64), column(INT64, 2), column(INT64), column(INT64),
    column(BOOL), column(INT64), column(INT64),
)  # fmt: skip
def begin_ordinary(
    keys: NDArray[np.int64],
    plain: NDArray[np.bool_],
    guesses: NDArray[np.int64],
    due: NDArray[np.int64],
    attempt: NDArray[np.int64],
    positions: NDArray[np.int64],
    ordinary: NDArray[np.bool_],
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> int:
    """Admit the rows that are simply their session's next step, where nothing else in the message is about it.

    keys int64 [N, 5], plain bool [N], guesses int64 [N]: what came, and the slot that each row's seat may have.
    positions: int64 [S + 1], any numbers. ordinary bool [N], and of the M rows admitted rows, slots int64 [N or more]:
    written.

    Returns:
        M.
    """
    for i in range(len(keys)):
        positions[guesses[i]] = i
        ordinary[i] = plain[i] and keys[i, 4] == 0
        for j in range(5):
            ordinary[i] &= due[guesses[i], j] == keys[i, j]
    for i in range(len(keys)):  # seats that have more rows than one: in their order, one by one
        if positions[guesses[i]] != i:
            ordinary[i] = ordinary[positions[guesses[i]]] = False
    admitted = 0
    for i in range(len(keys)):
        if ordinary[i]:
            slot = guesses[i]
            rows[admitted], slots[admitted] = i, slot
            due[slot, 3] += 1
            due[slot, 4] = WAITING
            attempt[slot] = 0
            admitted += 1
    return admitted


@compiled(
    read(INT64), read(BOOL), INT64, read(INT64), read(INT64), read(INT64, 2), column(INT64), column(INT64)
)  # fmt: skip
def state_rows(
    slots: NDArray[np.int64],
    redo: NDArray[np.bool_],
    zero_row: int,
    newest: NDArray[np.int64],
    spare: NDArray[np.int64],
    due: NDArray[np.int64],
    read_rows: NDArray[np.int64],
    write_rows: NDArray[np.int64],
) -> None:
    """Rows of the state before the steps that wait, and rows that the new states go to: int64 [B or more] each."""
    for i in range(len(slots)):
        slot = slots[i]
        if redo[i]:
            read_rows[i] = zero_row if due[slot, 3] == 1 else spare[slot]
            write_rows[i] = newest[slot]
        else:
            read_rows[i], write_rows[i] = newest[slot], spare[slot]


@compiled(
    read(INT64), read(INT64), read(INT32), read(FLOAT32), read(FLOAT32), INT64, FLOAT64,
    column(INT64), column(INT64), column(INT64, 2), column(INT32), column(FLOAT32), column(FLOAT32), column(INT64),
    column(FLOAT64),
)  # fmt: skip
def commit(
    slots: NDArray[np.int64],
    written: NDArray[np.int64],
    actions: NDArray[np.int32],
    log_probs: NDArray[np.float32],
    values: NDArray[np.float32],
    of_version: int,
    now: float,
    newest: NDArray[np.int64],
    spare: NDArray[np.int64],
    due: NDArray[np.int64],
    action: NDArray[np.int32],
    log_prob: NDArray[np.float32],
    value: NDArray[np.float32],
    version: NDArray[np.int64],
    touched_at: NDArray[np.float64],
) -> None:
    """The replies to the steps that waited, and the rows that their new states went to; [B] each, `written` or more."""
    for i in range(len(slots)):
        slot = slots[i]
        newest[slot], spare[slot] = written[i], written[i] ^ 1
        action[slot], log_prob[slot], value[slot] = actions[i], log_probs[i], values[i]
        version[slot], touched_at[slot] = of_version, now
        due[slot, 4] = 0
