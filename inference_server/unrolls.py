"""Builds unrolls out of single steps. Pure: numpy only.

Every recorded session owns a row of preallocated buffers. Step t's reward arrives with decision t + 1 (or the
END). When T steps are complete, the decision that follows is the bootstrap row, and row 0 of the next unroll.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.messages import TERMINATED, TRUNCATED, Unroll
from common.specs import GameSpec
from inference_server.compiled import FLOAT32, INT64, column, compiled, read

RESERVED_BYTES = 256 * 1024 * 1024


@dataclass(slots=True)
class Finished:
    """An unroll and its tensors, see `common.messages.Unroll`.

    The tensors are views of the builder's buffers: send or copy them before the next step of their row is appended.
    """

    message: Unroll
    tensors: dict[str, NDArray[Any]]

    @property
    def steps(self) -> int:
        """Steps that will be learned from."""
        return self.message.length


class UnrollBuilder:
    """Buffers [sessions, T + 1, ...]; `steps_open` counts steps not yet sent or dropped.

    Room for `capacity` sessions, but no more than RESERVED_BYTES, is reserved at once; it is doubled where that is not
    enough. The operating system backs what is touched: about (T + 1) * D * itemsize bytes a session recorded at a time.
    """

    def __init__(self, spec: GameSpec, unroll_length: int, state_size: int, capacity: int = 64) -> None:
        self._spec = spec
        self._fingerprint = spec.fingerprint()
        self._length = unroll_length
        self._state_size = state_size
        self._capacity = 0
        self._free: list[int] = []
        self.steps_open = 0
        self.dropped: Counter[str] = Counter()
        observations = (unroll_length + 1) * spec.observation_size * spec.dtype().itemsize
        self._allocate(max(1, min(capacity, RESERVED_BYTES // observations)))

    def open(self) -> int:
        """A row for a new session."""
        if not self._free:
            self._allocate(2 * self._capacity)
        row = self._free.pop()
        self._filled[row] = 0
        self._first_step[row] = 0
        return row

    def rewards(self, rows: NDArray[np.int64], reward: NDArray[np.float32]) -> None:
        """What the last appended step of each row earned, float32 [B]; -1 stands for no row."""
        _add_rewards(rows, reward, self._filled, self._reward)

    def full(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool [B]: the unroll is complete; the step that comes now is its bootstrap row."""
        return self._filled[rows] == self._length

    def fresh(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool [B]: the next appended step is the first of its unroll: `begin` needs the state before it."""
        return self._filled[rows] == 0

    def close_full(self, row: int, observation: NDArray[Any], mask: NDArray[Any], value: float) -> Finished:
        """The complete unroll of `row` with its bootstrap row. The row is fresh afterwards."""
        self._observation[row, self._length] = observation
        self._mask[row, self._length] = mask
        self._value[row, self._length] = value
        return self._pop(row, terminated=False, truncated=False)

    def begin(self, rows: NDArray[np.int64], states: NDArray[np.float32]) -> None:
        """States before the first step, float32 [B, state_size]."""
        self._state[rows] = states

    def append(
        self,
        rows: NDArray[np.int64],
        redo: NDArray[np.bool_],
        observation: NDArray[Any],
        mask: NDArray[Any],
        action: NDArray[np.int32],
        log_prob: NDArray[np.float32],
        value: NDArray[np.float32],
        version: int,
    ) -> None:
        """Record steps, arrays [B, ...]. A redo replaces the last recorded step of its session."""
        at = self._filled[rows] - redo
        self._observation[rows, at] = observation
        self._mask[rows, at] = mask
        self._action[rows, at] = action
        self._log_prob[rows, at] = log_prob
        self._value[rows, at] = value
        self._version[rows, at] = version
        self._reward[rows, at] = 0.0
        self._filled[rows] = at + 1
        self.steps_open += int(len(rows) - redo.sum())

    def end(self, row: int, kind: int, final_observation: NDArray[Any] | None, cause: str) -> Finished | None:
        """The session is over: its last unroll, or None where nothing is learned (counted under `cause`)."""
        filled = int(self._filled[row])
        finished = None
        if filled and kind == TERMINATED:
            self._observation[row, filled] = 0
            self._mask[row, filled] = 0
            self._value[row, filled] = 0.0
            finished = self._pop(row, terminated=True, truncated=False)
        elif filled and kind == TRUNCATED:
            self._observation[row, filled] = final_observation
            self._mask[row, filled] = 1
            self._value[row, filled] = 0.0
            finished = self._pop(row, terminated=False, truncated=True)
        elif filled:
            self.steps_open -= filled
            self.dropped[cause] += filled
        self._filled[row] = 0
        self._free.append(row)
        return finished

    def abort(self, rows: NDArray[np.int64], cause: str) -> None:
        """The sessions of these rows are over and nothing is learned from what is open."""
        filled = int(self._filled[rows].sum())
        if filled:
            self.steps_open -= filled
            self.dropped[cause] += filled
        self._filled[rows] = 0
        self._free.extend(rows.tolist())

    def _pop(self, row: int, *, terminated: bool, truncated: bool) -> Finished:
        n = int(self._filled[row])
        message = Unroll(
            length=n,
            first_step=int(self._first_step[row]),
            terminated=terminated,
            truncated=truncated,
            spec_fingerprint=self._fingerprint,
        )
        tensors: dict[str, NDArray[Any]] = {
            "observation": self._observation[row, : n + 1],
            "mask": self._mask[row, : n + 1],
            "action": self._action[row, :n],
            "log_prob": self._log_prob[row, :n],
            "value": self._value[row, : n + 1],
            "reward": self._reward[row, :n],
            "policy_version": self._version[row, :n],
            "state": self._state[row],
        }
        self._first_step[row] += n
        self._filled[row] = 0
        self.steps_open -= n
        return Finished(message, tensors)

    def _allocate(self, capacity: int) -> None:
        old, spec, rows = self._capacity, self._spec, self._length + 1
        shapes: dict[str, tuple[tuple[int, ...], Any]] = {
            "_observation": ((rows, spec.observation_size), spec.dtype()),
            "_mask": ((rows, spec.num_actions), np.uint8),
            "_action": ((rows,), np.int32),
            "_log_prob": ((rows,), np.float32),
            "_value": ((rows,), np.float32),
            "_reward": ((rows,), np.float32),
            "_version": ((rows,), np.int64),
            "_state": ((self._state_size,), np.float32),
            "_filled": ((), np.int64),
            "_first_step": ((), np.int64),
        }
        for name, (shape, dtype) in shapes.items():
            grown = np.zeros((capacity, *shape), dtype)
            if old:
                grown[:old] = getattr(self, name)
            setattr(self, name, grown)
        self._free.extend(range(capacity - 1, old - 1, -1))
        self._capacity = capacity

    _observation: NDArray[Any]
    _mask: NDArray[np.uint8]
    _action: NDArray[np.int32]
    _log_prob: NDArray[np.float32]
    _value: NDArray[np.float32]
    _reward: NDArray[np.float32]
    _version: NDArray[np.int64]
    _state: NDArray[np.float32]
    _filled: NDArray[np.int64]
    _first_step: NDArray[np.int64]


@compiled(read(INT64), read(FLOAT32), read(INT64), column(FLOAT32, 2))
def _add_rewards(
    rows: NDArray[np.int64], earned: NDArray[np.float32], filled: NDArray[np.int64], reward: NDArray[np.float32]
) -> None:
    for i in range(len(rows)):
        if rows[i] >= 0:
            reward[rows[i], filled[rows[i]] - 1] += earned[i]  # a row without steps: into the place behind the last
