"""EVALUATE for `InferenceClient`: packs observations, unpacks priors and values.

number = client.evaluate(observations, masks)          # zero state; or sessions=[(env, seat, episode), ...]
for evaluation in client.poll().evaluations: ...        # evaluation.id == number
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from simul.common.client.requests import PendingRequest, PendingRequests
from simul.common.protocol.codec import Tensors, expect
from simul.common.protocol.masks import no_bits_beyond, pack_masks, packed_width, unpack_masks
from simul.common.protocol.messages import LEARNER_POLICY, Error, Evaluate, Evaluated
from simul.common.protocol.specs import GameSpec

NO_SESSION = (-1, -1, -1)  # in `sessions`: evaluate this row with zero state


class Evaluation(msgspec.Struct):
    """The answer to `evaluate`, row for row.

    Attributes:
        mask: uint8 [N, ceil(A / 8)], of the request, as bits.
        first: int64 [N + 1]; the priors of row i are legal_priors[first[i] : first[i + 1]].
        legal_priors: float32 [K], probabilities of the legal actions, in order of their ids, row behind row; 0 in rows
            that were refused.
        value: float32 [N], NaN for rows that were refused.
        policy_version: int64 [N], of the weights that answered the row, -1 for rows that were refused.
        errors: (code, message) of refused rows, by row.
    """

    id: int
    num_actions: int
    mask: NDArray[np.uint8]
    first: NDArray[np.int64]
    legal_priors: NDArray[np.float32]
    value: NDArray[np.float32]
    policy_version: NDArray[np.int64]
    errors: dict[int, tuple[str, str]]

    @property
    def priors(self) -> NDArray[np.float32]:
        """float32 [N, A], probabilities of the legal actions, 0 elsewhere. Built at each call."""
        priors = np.zeros((len(self.mask), self.num_actions), np.float32)
        priors[unpack_masks(self.mask, self.num_actions) > 0] = self.legal_priors
        return priors


def unanswered(number: int, mask: NDArray[np.uint8], num_actions: int) -> Evaluation:
    """The evaluation of rows that have no answer yet. mask: uint8 [N, ceil(A / 8)], bits."""
    first = np.zeros(len(mask) + 1, np.int64)
    np.cumsum(np.bitwise_count(mask).sum(axis=1, dtype=np.int64), out=first[1:])
    priors, value = np.zeros(first[-1], np.float32), np.full(len(mask), np.nan, np.float32)
    return Evaluation(number, num_actions, mask, first, priors, value, np.full(len(mask), -1, np.int64), {})


class _PendingEvaluation(PendingRequest, kw_only=True):
    answer: Evaluation
    open: NDArray[np.bool_]


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
    policy: str = LEARNER_POLICY,
    sessions: Sequence[tuple[int, int, int]] | None = None,
    packed: bool = False,
) -> tuple[Evaluate, dict[str, NDArray[Any]]]:
    """The EVALUATE message `number` and its tensors. Arguments as for `InferenceClient.evaluate`.

    Raises:
        ValueError: an array does not fit the game spec or the other arrays.
    """
    check_bytes(observation, spec)
    rows = np.asarray(observation, spec.dtype())
    legal = np.asarray(mask, np.uint8) if packed else np.asarray(mask).astype(bool)
    width = packed_width(spec.num_actions) if packed else spec.num_actions
    if rows.ndim != 2 or rows.shape[1] != spec.observation_size or legal.shape != (len(rows), width):
        raise ValueError(
            f"expected observations [N, {spec.observation_size}] and masks [N, {width}], "
            f"got {list(rows.shape)} and {list(legal.shape)}"
        )
    if packed and not no_bits_beyond(legal, spec.num_actions).all():
        raise ValueError(f"a packed mask has bits beyond those of the {spec.num_actions} actions; set them to 0")
    if sessions is not None and len(sessions) != len(rows):
        raise ValueError(f"expected a session (or NO_SESSION) for each of {len(rows)} rows, got {len(sessions)}")
    bits = legal if packed else pack_masks(legal)
    tensors: dict[str, NDArray[Any]] = {"observation": rows, "mask": bits}
    if sessions is not None:
        tensors["session"] = np.array(sessions, np.int64).reshape(len(rows), 3)
    return Evaluate(id=number, policy=policy), tensors


class PendingEvaluations(PendingRequests[_PendingEvaluation]):
    """EVALUATE messages that the server has not answered in full."""

    def add(self, message: Evaluate, tensors: Tensors, num_actions: int) -> None:
        """Register a message before it is sent."""
        answer = unanswered(message.id, tensors["mask"], num_actions)
        unread = np.ones(len(answer.value), bool)
        self._pending[message.id] = _PendingEvaluation(message, tensors, answer=answer, open=unread)

    def apply_evaluated(self, message: Evaluated, tensors: Tensors) -> list[Evaluation]:
        """Store answered rows. Returns the evaluation if it is complete now. Raises ProtocolError."""
        pending = self._pending.get(message.id)
        if pending is None:
            return []
        rows, answer = expect(tensors, "row", "int32", (None,)), pending.answer
        counts = np.diff(answer.first)[rows]
        priors = expect(tensors, "priors", "float32", (int(counts.sum()),))
        moved_by = answer.first[rows] - (np.cumsum(counts) - counts)  # of each row, from `priors` to the answer
        answer.legal_priors[np.arange(len(priors)) + np.repeat(moved_by, counts)] = priors
        answer.value[rows] = expect(tensors, "value", "float32", (len(rows),))
        answer.policy_version[rows] = message.policy_version
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
