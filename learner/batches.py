"""Unrolls as they arrive: checked, then padded into [T, B] tensors. Pure: no sockets.

T = the longest unroll of a minibatch, B = its unrolls, D = observation size, A = actions, S = state size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.errors import ProtocolError, SimulError
from simul.common.protocol.codec import expect
from simul.common.protocol.masks import PACKED_FROM, stored_width, unpack_masks
from simul.common.protocol.messages import Unroll
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.common.runtime.finite import finite_rows
from simul.learner.algorithms import Trajectories


class RejectedUnroll(SimulError):
    """An unroll that cannot be learned from. The receiver drops it and counts it by `cause`. `steps` 0: unknown."""

    def __init__(self, cause: str, message: str, steps: int) -> None:
        super().__init__(message)
        self.cause = cause
        self.steps = steps


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


@dataclass(frozen=True)
class Minibatch:
    """Padded tensors of some unrolls.

    Attributes:
        observation: wire dtype [T + 1, B, D]. mask: bool [T + 1, B, A]. state: float32 [B, S].
        lengths: int64 [B] on the CPU, rows that the network evaluates: the bootstrap row included unless terminated.
        policy_version: int64 [T, B].
        trajectories: the recorded facts, [T, B].
    """

    observation: Tensor
    mask: Tensor
    state: Tensor
    lengths: Tensor
    policy_version: Tensor
    trajectories: Trajectories


class UnrollChecker:
    """Checks shapes, spec and values of the unrolls of one run."""

    def __init__(self, spec: GameSpec, state_size: int, unroll_length: int) -> None:
        self._spec = spec
        self._fingerprint = spec.fingerprint()
        self._state_size = state_size
        self._unroll_length = unroll_length
        self.layout = UnrollLayout(spec, unroll_length, state_size)

    def check(self, message: Unroll, tensors: Mapping[str, NDArray[Any]]) -> ReceivedUnroll:
        """Raises RejectedUnroll with the cause `wrong_spec`, `bad_shape` or `bad_value`."""
        steps = message.length if 1 <= message.length <= self._unroll_length else 0
        if message.spec_fingerprint != self._fingerprint:
            raise RejectedUnroll(
                "wrong_spec", f"spec fingerprint: expected {self._fingerprint}, got {message.spec_fingerprint}", steps
            )
        if not steps:
            raise RejectedUnroll("bad_shape", f"length {message.length}; expected 1 to {self._unroll_length}", 0)
        try:
            arrays = self._arrays(message.length, tensors)
        except ProtocolError as error:
            raise RejectedUnroll("bad_shape", str(error), steps) from None
        for name in ("observation", "log_prob", "reward", "state"):
            if not finite_rows(np.atleast_2d(arrays[name])).all():
                raise RejectedUnroll("bad_value", f"{name} is not finite", steps)
        action = arrays["action"]
        inside = (action >= 0) & (action < self._spec.num_actions)
        if not inside.all() or not self._legal(arrays["mask"][: message.length], action).all():
            raise RejectedUnroll("bad_value", "an action is not legal by its own mask", steps)
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
        }
        return {name: expect(tensors, name, dtype, shape) for name, (dtype, shape) in wanted.items()}


def empty_unroll(spec: GameSpec, state_size: int) -> ReceivedUnroll:
    """An unroll of no steps: nothing but its bootstrap row. A minibatch of it has T = 0, and gradients of 0."""
    width = stored_width(spec.num_actions)
    arrays: dict[str, NDArray[Any]] = {
        "observation": np.zeros((1, spec.observation_size), spec.dtype()),
        "mask": np.full((1, width), 1 if spec.num_actions < PACKED_FROM else 255, np.uint8),
        "action": np.zeros(0, np.int32),
        "log_prob": np.zeros(0, np.float32),
        "reward": np.zeros(0, np.float32),
        "policy_version": np.zeros(0, np.int64),
        "state": np.zeros(state_size, np.float32),
    }
    packed = spec.num_actions if spec.num_actions >= PACKED_FROM else 0
    return ReceivedUnroll(0, terminated=False, arrays=arrays, packed_actions=packed)


def make_minibatch(unrolls: Sequence[ReceivedUnroll], discount: float, device: torch.device) -> Minibatch:
    """Pad unrolls with zeros into tensors on `device`. `discount`: of one step."""
    steps, sessions = max(unroll.length for unroll in unrolls), len(unrolls)
    padded = {
        name: np.zeros(
            ((steps + 1 if name in ("observation", "mask") else steps), sessions, *array.shape[1:]), array.dtype
        )
        for name, array in unrolls[0].arrays.items()
        if name != "state"
    }
    for b, unroll in enumerate(unrolls):
        for name, target in padded.items():
            source = unroll.arrays[name]
            target[: len(source), b] = source
    if actions := unrolls[0].packed_actions:
        padded["mask"] = unpack_masks(padded["mask"], actions)
    tensors = {name: torch.from_numpy(array).to(device) for name, array in padded.items()}
    length = torch.tensor([unroll.length for unroll in unrolls])
    terminated = torch.tensor([unroll.terminated for unroll in unrolls])
    step = torch.arange(steps)[:, None]
    ends = terminated & (step == length - 1)  # (T, B)
    trajectories = Trajectories(
        mask=tensors["mask"][:-1].bool(),
        action=tensors["action"].long(),
        reward=tensors["reward"],
        behaviour_log_prob=tensors["log_prob"],
        discount=torch.where(ends, 0.0, discount).to(device),
        valid=(step < length).to(device),
    )
    return Minibatch(
        observation=tensors["observation"],
        mask=tensors["mask"].bool(),
        state=torch.from_numpy(np.stack([unroll.arrays["state"] for unroll in unrolls])).to(device),
        lengths=length + (~terminated).long(),
        policy_version=tensors["policy_version"],
        trajectories=trajectories,
    )
