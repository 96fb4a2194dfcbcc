"""The rows of STEP and EVALUATE as columns, checked for shape, and what is wrong with single rows. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import ERR_DENIED, ERR_LIMIT, ERR_VALUE, ProtocolError
from simul.common.protocol.codec import Tensors, expect, expect_only
from simul.common.protocol.masks import no_bits_beyond, packed_width, unpack_masks
from simul.common.protocol.messages import (
    DECISION,
    EVALUATE_TENSORS,
    FLAGS,
    GREEDY,
    NO_LABEL,
    RECORD,
    SAME_LABEL,
    STEP_TENSORS,
    Evaluate,
    Samples,
    Step,
)
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.compiled import BOOL, FLOAT32, UINT8, UINT16, UINT32, column, compiled, read
from simul.common.runtime.finite import FLOAT16_EXPONENT, FLOAT32_EXPONENT, describe_not_finite, finite_rows

MAX_ROWS = 4096
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.001, 100.0  # a finite logit below 3e35 stays finite when it is divided
_INT64, _FLOAT32, _UINT8, _INT16 = (np.dtype(name) for name in ("int64", "float32", "uint8", "int16"))


@dataclass(eq=False, slots=True)
class StepRows:
    """Columns of STEP (see `simul.common.protocol.messages.Step`), and bool [N] each:

    finite: observation and reward are finite; has_legal: the mask allows an action and is made of 0 and 1;
    plain: both, the row is a decision, and its flags are known ones.
    unread: the observations lie where their client can still write. `finite` says nothing of them; the copy of
    a row is checked instead.
    label: int16 [N, K], None where the message has none; `plain` rows have labels that the game knows.
    """

    keys: NDArray[np.int64]
    kind: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    reward: NDArray[np.float32]
    policy: NDArray[np.uint8]
    temperature: NDArray[np.float32] | None  # None: 1 everywhere
    observation: NDArray[Any]
    mask: NDArray[np.uint8]
    finite: NDArray[np.bool_]
    has_legal: NDArray[np.bool_]
    plain: NDArray[np.bool_]
    unread: bool
    label: NDArray[np.int16] | None = None
    label_classes: int = 0

    @property
    def labelled(self) -> NDArray[np.bool_] | None:
        """bool [N]: the row says what the opponent did; None: no row does."""
        if self.label is None:
            return None
        labelled: NDArray[np.bool_] = np.any(self.label != NO_LABEL, axis=1)
        return labelled

    def check_label(self, row: int, *, unrecorded: bool) -> None:
        """`unrecorded`: the row's session is not recorded. Raises ProtocolError ERR_VALUE or ERR_DENIED."""
        if self.label is None or (self.label[row] == NO_LABEL).all():
            return
        if not _known_labels(self.label[[row]], self.label_classes)[0]:
            raise ProtocolError(
                ERR_VALUE,
                f"label {self.label[row].tolist()}; expected 0 to {self.label_classes - 1}, {NO_LABEL} (none) or "
                f"{SAME_LABEL} (that of the next step)",
            )
        if unrecorded:
            raise ProtocolError(ERR_DENIED, "a label for a session that is not recorded; leave it out, or send -1")

    def describe_not_finite(self, row: int) -> str:
        """What of a row that is not `finite` is wrong."""
        if not np.isfinite(self.reward[row]):
            return f"the reward is {self.reward[row]}; expected a finite number of float32"
        return describe_not_finite(self.observation[row])

    def final_observation(self, row: int) -> NDArray[Any]:
        """Of an episode that was cut short, wire dtype [D]. Raises ProtocolError ERR_VALUE."""
        if not self.finite[row]:
            raise ProtocolError(ERR_VALUE, self.describe_not_finite(row))
        if not self.unread:
            return self.observation[row]
        copied = self.observation[row].copy()
        if not np.isfinite(copied).all():
            raise ProtocolError(ERR_VALUE, describe_not_finite(copied))
        return copied

    def temperature_of(self, row: int) -> float:
        """The sampling temperature of a row with START. Raises ProtocolError ERR_VALUE, also for GREEDY with RECORD."""
        temperature = 1.0 if self.temperature is None else float(self.temperature[row])
        if not np.float32(MIN_TEMPERATURE) <= temperature <= MAX_TEMPERATURE:
            raise ProtocolError(
                ERR_VALUE,
                f"temperature {temperature:g}; expected {MIN_TEMPERATURE:g} to {MAX_TEMPERATURE:g}, 1 where left out; "
                "for the most probable action set the flag GREEDY",
            )
        if self.flags[row] & RECORD and temperature != 1.0:
            raise ProtocolError(
                ERR_VALUE, f"temperature {temperature:g} with RECORD; what is learned from is sampled at temperature 1"
            )
        if self.flags[row] & RECORD and self.flags[row] & GREEDY:
            raise ProtocolError(
                ERR_VALUE, "GREEDY with RECORD; what is learned from is sampled, so leave one of them out"
            )
        return temperature


def check_request(message: Step | Evaluate | Samples) -> None:
    """Check the numbers of a request's header. Raises ProtocolError ERR_VALUE."""
    if message.id < 0:
        raise ProtocolError(ERR_VALUE, f"id {message.id}; expected 0 or more")
    if isinstance(message, Step) and message.deadline_ms < 0:
        raise ProtocolError(ERR_VALUE, f"deadline_ms {message.deadline_ms}; expected 0 (none) or more")


def _step_masks(spec: GameSpec, tensors: Tensors, n: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_] | None]:
    """Masks uint8 [n, A], sent as they are or packed; of packed ones also bool [n]: no bits beyond the last action."""
    packed = tensors.get("mask")
    width = packed_width(spec.num_actions)
    if packed is None or packed.shape != (n, width) or width == spec.num_actions:
        return expect(tensors, "mask", _UINT8, (n, spec.num_actions)), None
    bits = expect(tensors, "mask", _UINT8, (n, width))
    return unpack_masks(bits, spec.num_actions), no_bits_beyond(bits, spec.num_actions)


def _labels(spec: GameSpec, tensors: Tensors, n: int) -> NDArray[np.int16] | None:
    """int16 [n, K]. Raises ProtocolError ERR_SHAPE or, where the game has no labels, ERR_VALUE."""
    if "label" not in tensors:
        return None
    if not spec.opponent_labels:
        raise ProtocolError(ERR_VALUE, f"label: the game {spec.name} declares no labels of its opponents; leave it out")
    return np.ascontiguousarray(expect(tensors, "label", _INT16, (n, spec.opponent_labels)))


def _known_labels(label: NDArray[np.int16], classes: int) -> NDArray[np.bool_]:
    """bool [N] of int16 [N, K]: each is a class or one of the two other numbers."""
    known: NDArray[np.bool_] = np.all((label >= SAME_LABEL) & (label < classes), axis=1)
    return known


def unpack_step(spec: GameSpec, tensors: Tensors, *, unread: bool = False) -> StepRows:
    """The columns of a STEP message. `unread`: see `StepRows`.

    Raises:
        ProtocolError: ERR_LIMIT, ERR_SHAPE or ERR_VALUE: the message as a whole is wrong.
    """
    expect_only(tensors, STEP_TENSORS)
    keys = expect(tensors, "keys", _INT64, (None, 5))
    n = len(keys)
    if n > MAX_ROWS:
        raise ProtocolError(ERR_LIMIT, f"{n} rows in one STEP; at most {MAX_ROWS}")
    observation = expect(tensors, "observation", spec.dtype(), (n, spec.observation_size))
    mask, within = _step_masks(spec, tensors, n)
    reward = expect(tensors, "reward", _FLOAT32, (n,))
    kind, flags = expect(tensors, "kind", _UINT8, (n,)), expect(tensors, "flags", _UINT8, (n,))
    finite, has_legal, plain = (np.empty(n, np.bool_) for _ in range(3))
    bits, exponent, check = _FINITE[observation.dtype]
    judged = np.empty((n, 0), bits) if unread or observation.dtype == _UINT8 else observation.view(bits)
    check(judged, exponent, reward, mask, kind, flags, finite, has_legal, plain)
    if within is not None:
        has_legal &= within
        plain &= within
    label = _labels(spec, tensors, n)
    if label is not None:
        plain &= _known_labels(label, spec.opponent_classes)
    return StepRows(
        keys=keys,
        kind=kind,
        flags=flags,
        reward=reward,
        policy=expect(tensors, "policy", _UINT8, (n,)),
        temperature=expect(tensors, "temperature", "float32", (n,)) if "temperature" in tensors else None,
        observation=observation,
        mask=mask,
        finite=finite,
        has_legal=has_legal,
        plain=plain,
        unread=unread,
        label=label,
        label_classes=spec.opponent_classes,
    )


class EvaluateRows(NamedTuple):
    """Columns of EVALUATE.

    observation: wire dtype [N, D]; bits: uint8 [N, ceil(A / 8)], packed masks; session: int64 [N, 3], env -1: zero
    state; finite: bool [N], the observation is; within: bool [N], the mask has no bits beyond those of the last action.
    """

    observation: NDArray[Any]
    bits: NDArray[np.uint8]
    session: NDArray[np.int64]
    finite: NDArray[np.bool_]
    within: NDArray[np.bool_]


def unpack_evaluate(spec: GameSpec, tensors: Tensors) -> EvaluateRows:
    """The columns of an EVALUATE message. Raises ProtocolError as `unpack_step` does."""
    expect_only(tensors, EVALUATE_TENSORS)
    observation = expect(tensors, "observation", spec.dtype(), (None, spec.observation_size))
    n = len(observation)
    if n > MAX_ROWS:
        raise ProtocolError(ERR_LIMIT, f"{n} rows in one EVALUATE; at most {MAX_ROWS}")
    bits = expect(tensors, "mask", _UINT8, (n, packed_width(spec.num_actions)))
    session = expect(tensors, "session", _INT64, (n, 3)) if "session" in tensors else np.full((n, 3), -1, np.int64)
    within = no_bits_beyond(bits, spec.num_actions)
    return EvaluateRows(observation, bits, session, finite_rows(observation), within)


def _check(
    bits: NDArray[Any],
    exponent: int,
    reward: NDArray[np.float32],
    mask: NDArray[np.uint8],
    kind: NDArray[np.uint8],
    flags: NDArray[np.uint8],
    finite: NDArray[np.bool_],
    has_legal: NDArray[np.bool_],
    plain: NDArray[np.bool_],
) -> None:
    """Write the last three, see `StepRows`.

    `bits`: the observation; NaN and infinities have every bit of `exponent`.
    """
    for i in range(len(kind)):
        wrong = 0
        for j in range(bits.shape[1]):
            wrong |= (bits[i, j] & exponent) == exponent
        highest = 0
        for j in range(mask.shape[1]):
            highest = max(highest, mask[i, j])
        finite[i] = not wrong and np.isfinite(reward[i])
        has_legal[i] = highest == 1
        plain[i] = finite[i] and has_legal[i] and kind[i] == DECISION and flags[i] <= FLAGS


_COLUMNS = read(FLOAT32), read(UINT8, 2), read(UINT8), read(UINT8), column(BOOL), column(BOOL), column(BOOL)
_FINITE = {  # by dtype of the observation: as what its bits are seen, which of them are the exponent's, the loop
    np.dtype(np.float16): (np.uint16, FLOAT16_EXPONENT, compiled(read(UINT16, 2), UINT16, *_COLUMNS)(_check)),
    np.dtype(np.float32): (np.uint32, FLOAT32_EXPONENT, compiled(read(UINT32, 2), UINT32, *_COLUMNS)(_check)),
}
_FINITE[_UINT8] = _FINITE[np.dtype(np.float16)]  # with no columns: every whole number is finite
