"""Unrolls as they arrive from a server, checked. Pure: no sockets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import ProtocolError
from simul.common.protocol.codec import expect
from simul.common.protocol.masks import PACKED_FROM, stored_width
from simul.common.protocol.messages import NO_LABEL, Unroll
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.common.runtime.finite import finite_rows
from simul.learner.io.rejected import RejectedError


@dataclass(frozen=True)
class ReceivedUnroll:
    """A checked unroll; arrays, `session` and `first_step` as `messages.Unroll` declares them.

    `over`: its session ends with it. `packed_actions`: A where masks are packed, 0 where they are not.
    """

    length: int
    terminated: bool
    arrays: Mapping[str, NDArray[Any]]
    session: int = 0
    first_step: int = 0
    over: bool = False
    packed_actions: int = 0

    @property
    def oldest_version(self) -> int:
        """The version that chose its first action."""
        return int(self.arrays["policy_version"].min())

    @property
    def newest_version(self) -> int:
        """The version that chose its last action."""
        return int(self.arrays["policy_version"].max())


class UnrollChecker:
    """Checks shapes, spec and values of the unrolls of one run."""

    def __init__(self, spec: GameSpec, state_size: int, unroll_length: int) -> None:
        self._spec = spec
        self._fingerprint = spec.fingerprint()
        self._state_size = state_size
        self._unroll_length = unroll_length
        self.layout = UnrollLayout(spec, unroll_length, state_size)

    def check(self, message: Unroll, tensors: Mapping[str, NDArray[Any]]) -> ReceivedUnroll:
        """Raises RejectedError with the cause `wrong_spec`, `bad_shape` or `bad_value`."""
        steps = message.length if 1 <= message.length <= self._unroll_length else 0
        if message.spec_fingerprint != self._fingerprint:
            raise RejectedError(
                "wrong_spec", f"spec fingerprint: expected {self._fingerprint}, got {message.spec_fingerprint}", steps
            )
        if not steps:
            raise RejectedError("bad_shape", f"length {message.length}; expected 1 to {self._unroll_length}", 0)
        try:
            arrays = self._arrays(message.length, tensors)
        except ProtocolError as error:
            raise RejectedError("bad_shape", str(error), steps) from None
        for name in ("observation", "log_prob", "reward", "state"):
            if not finite_rows(np.atleast_2d(arrays[name])).all():
                raise RejectedError("bad_value", f"{name} is not finite", steps)
        action = arrays["action"]
        inside = (action >= 0) & (action < self._spec.num_actions)
        if not inside.all() or not self._legal(arrays["mask"][: message.length], action).all():
            raise RejectedError("bad_value", "an action is not legal by its own mask", steps)
        label, classes = arrays.get("label"), self._spec.opponent_classes
        if label is not None and not ((label >= NO_LABEL) & (label < classes)).all():
            raise RejectedError("bad_value", f"a label is not {NO_LABEL} (none) to {classes - 1}", steps)
        over = message.terminated or message.truncated
        return ReceivedUnroll(
            message.length, message.terminated, arrays, message.session, message.first_step, over,
            self._spec.num_actions if self._spec.num_actions >= PACKED_FROM else 0,
        )  # fmt: skip

    def _legal(self, mask: NDArray[np.uint8], action: NDArray[np.int32]) -> NDArray[Any]:
        """[length]: not 0 where the action is legal by its own row's mask."""
        rows = np.arange(len(action))
        if self._spec.num_actions < PACKED_FROM:
            return mask[rows, action]
        return mask[rows, action // 8] >> (action % 8).astype(np.uint8) & 1

    def _arrays(self, length: int, tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        spec = self._spec
        wanted: dict[str, tuple[Any, tuple[int, ...]]] = {
            "observation": (spec.dtype(), (length + 1, spec.observation_size)),
            "mask": ("uint8", (length + 1, stored_width(spec.num_actions))),
            "action": ("int32", (length,)),
            "log_prob": ("float32", (length,)),
            "reward": ("float32", (length,)),
            "policy_version": ("int64", (length,)),
            "state": ("float32", (self._state_size,)),
            **({"label": ("int16", (length, spec.opponent_labels))} if spec.opponent_labels else {}),
        }
        return {name: expect(tensors, name, dtype, shape) for name, (dtype, shape) in wanted.items()}
