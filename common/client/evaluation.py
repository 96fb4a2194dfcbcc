"""EVALUATE for `InferenceClient`: packs observations, unpacks priors and values.

number = client.evaluate(observations, masks)          # zero state; or sessions=[(env, seat, episode), ...]
for evaluation in client.poll().evaluations: ...        # evaluation.id == number
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from simul.common.protocol.codec import Tensors, expect
from simul.common.protocol.messages import Error, Evaluate, Evaluated
from simul.common.protocol.specs import GameSpec

NO_SESSION = (-1, -1, -1)  # in `sessions`: evaluate this row with zero state


class Evaluation(msgspec.Struct):
    """The answer to `evaluate`, row for row.

    Attributes:
        priors: float32 [N, A], probabilities of the legal actions, 0 elsewhere.
        value: float32 [N], NaN for rows that were refused.
        policy_version: int64 [N], of the weights that answered the row, -1 for rows that were refused.
        errors: (code, message) of refused rows, by row.
    """

    id: int
    priors: NDArray[np.float32]
    value: NDArray[np.float32]
    policy_version: NDArray[np.int64]
    errors: dict[int, tuple[str, str]]


class _PendingEvaluation(msgspec.Struct):
    message: Evaluate
    tensors: Tensors
    legal: NDArray[np.bool_]
    answer: Evaluation
    open: NDArray[np.bool_]
    sent_at: float = -math.inf
    due_at: float = math.inf  # time of the retry after ERR_BUSY


def check_bytes(observation: ArrayLike, spec: GameSpec) -> None:
    """Raises ValueError where the game's observations are uint8 and these are not: a cast would lose numbers."""
    if spec.observation_dtype == "uint8" and (found := np.asarray(observation).dtype) not in (np.uint8, np.bool_):
        raise ValueError(
            f"the observation has dtype {found}; the game {spec.name} expects uint8, numbers from 0 to 255"
        )


def pack_evaluate(
    number: int,
    observation: ArrayLike,
    mask: ArrayLike,
    spec: GameSpec,
    *,
    policy: str = "learner",
    sessions: Sequence[tuple[int, int, int]] | None = None,
) -> tuple[Evaluate, dict[str, NDArray[Any]]]:
    """The EVALUATE message `number` and its tensors. Arguments as for `InferenceClient.evaluate`.

    Raises:
        ValueError: an array does not fit the game spec or the other arrays.
    """
    check_bytes(observation, spec)
    rows = np.asarray(observation, spec.dtype())
    legal = np.asarray(mask).astype(bool)
    if rows.ndim != 2 or rows.shape[1] != spec.observation_size or legal.shape != (len(rows), spec.num_actions):
        raise ValueError(
            f"expected observations [N, {spec.observation_size}] and masks [N, {spec.num_actions}], "
            f"got {list(rows.shape)} and {list(legal.shape)}"
        )
    if sessions is not None and len(sessions) != len(rows):
        raise ValueError(f"expected a session (or NO_SESSION) for each of {len(rows)} rows, got {len(sessions)}")
    tensors: dict[str, NDArray[Any]] = {"observation": rows, "mask": np.packbits(legal, axis=1, bitorder="little")}
    if sessions is not None:
        tensors["session"] = np.array(sessions, np.int64).reshape(len(rows), 3)
    return Evaluate(id=number, policy=policy), tensors


class PendingEvaluations:
    """EVALUATE messages that the server has not answered in full. Times in seconds."""

    def __init__(self, spec: GameSpec) -> None:
        self._spec = spec
        self._pending: dict[int, _PendingEvaluation] = {}

    def __contains__(self, number: int) -> bool:
        return number in self._pending

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, message: Evaluate, tensors: Tensors) -> None:
        """Register a message before it is sent."""
        bits = np.unpackbits(tensors["mask"], axis=1, count=self._spec.num_actions, bitorder="little")
        n = len(bits)
        answer = Evaluation(
            message.id, np.zeros(bits.shape, np.float32), np.full(n, np.nan, np.float32), np.full(n, -1, np.int64), {}
        )
        self._pending[message.id] = _PendingEvaluation(message, tensors, bits > 0, answer, np.ones(n, bool))

    def request(self, number: int) -> tuple[Evaluate, Tensors]:
        """The message and its tensors, to be sent or resent; rows are counted once."""
        pending = self._pending[number]
        return pending.message, pending.tensors

    def mark_sent(self, number: int, now: float) -> None:
        """Note that the message was sent at `now`."""
        self._pending[number].sent_at, self._pending[number].due_at = now, math.inf

    def defer(self, number: int, until: float) -> None:
        """Schedule a retry at `until`, after ERR_BUSY."""
        self._pending[number].due_at = until

    def due(self, now: float) -> list[int]:
        """Ids of deferred messages that are due."""
        return [number for number, pending in self._pending.items() if pending.due_at <= now]

    def overdue(self, older_than: float) -> list[int]:
        """Ids of messages sent before `older_than`."""
        return [number for number, pending in self._pending.items() if pending.sent_at <= older_than]

    def apply_evaluated(self, message: Evaluated, tensors: Tensors) -> list[Evaluation]:
        """Store answered rows. Returns the evaluation if it is complete now. Raises ProtocolError."""
        pending = self._pending.get(message.id)
        if pending is None:
            return []
        rows = expect(tensors, "row", "int32", (None,))
        legal = pending.legal[rows]
        priors = np.zeros(legal.shape, np.float32)
        priors[legal] = expect(tensors, "priors", "float32", (int(legal.sum()),))
        pending.answer.priors[rows] = priors
        pending.answer.value[rows] = expect(tensors, "value", "float32", (len(rows),))
        pending.answer.policy_version[rows] = message.policy_version
        pending.open[rows] = False
        return self._finished(pending)

    def apply_error(self, error: Error) -> list[Evaluation]:
        """Store refused rows. Returns the evaluation if it is complete now."""
        pending = self._pending[error.id]
        for row in error.rows or range(len(pending.open)):
            if pending.open[row]:
                pending.answer.errors[row] = (error.code, error.message)
                pending.open[row] = False
        return self._finished(pending)

    def _finished(self, pending: _PendingEvaluation) -> list[Evaluation]:
        if pending.open.any():
            return []
        del self._pending[pending.message.id]
        return [pending.answer]
