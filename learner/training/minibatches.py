"""Unrolls padded into [T, B] tensors. Pure.

T = the longest unroll of a minibatch, B = its unrolls, D = observation size, A = actions, S = state size, K = labels of
a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.protocol.masks import PACKED_FROM, stored_width, unpack_masks
from simul.common.protocol.messages import NO_LABEL
from simul.common.protocol.specs import GameSpec
from simul.learner.algorithms import Trajectories
from simul.learner.io.unrolls import ReceivedUnroll


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
        **({"label": np.zeros((0, spec.opponent_labels), np.int16)} if spec.opponent_labels else {}),
    }
    packed = spec.num_actions if spec.num_actions >= PACKED_FROM else 0
    return ReceivedUnroll(0, terminated=False, arrays=arrays, packed_actions=packed)


def make_minibatch(
    unrolls: Sequence[ReceivedUnroll], discount: float, device: torch.device, burn_in: int = 0
) -> Minibatch:
    """Pad unrolls with zeros (labels with NO_LABEL) into tensors on `device`.

    Args:
        unrolls: at least one.
        discount: of one step.
        device: of the tensors.
        burn_in: so many first steps of an unroll are evaluated and not learned from, but at most half of them. The
            first unroll of an episode has none: the state before it is exact.
    """
    steps, sessions = max(unroll.length for unroll in unrolls), len(unrolls)
    padded = {
        name: np.zeros(
            ((steps + 1 if name in ("observation", "mask") else steps), sessions, *array.shape[1:]), array.dtype
        )
        for name, array in unrolls[0].arrays.items()
        if name != "state"
    }
    if "label" in padded:
        padded["label"].fill(NO_LABEL)
    for b, unroll in enumerate(unrolls):
        for name, target in padded.items():
            source = unroll.arrays[name]
            target[: len(source), b] = source
    if actions := unrolls[0].packed_actions:
        padded["mask"] = unpack_masks(padded["mask"], actions)
    tensors = {name: torch.from_numpy(array).to(device) for name, array in padded.items()}
    length = torch.tensor([unroll.length for unroll in unrolls])
    terminated = torch.tensor([unroll.terminated for unroll in unrolls])
    burned = torch.tensor([min(burn_in, unroll.length // 2) if unroll.first_step else 0 for unroll in unrolls])
    step = torch.arange(steps)[:, None]
    ends = terminated & (step == length - 1)  # (T, B)
    trajectories = Trajectories(
        mask=tensors["mask"][:-1].bool(),
        action=tensors["action"].long(),
        reward=tensors["reward"],
        behaviour_log_prob=tensors["log_prob"],
        discount=torch.where(ends, 0.0, discount).to(device),
        valid=((step >= burned) & (step < length)).to(device),
        label=tensors["label"].long() if "label" in tensors else None,
    )
    return Minibatch(
        observation=tensors["observation"],
        mask=tensors["mask"].bool(),
        state=torch.from_numpy(np.stack([unroll.arrays["state"] for unroll in unrolls])).to(device),
        lengths=length + (~terminated).long(),
        policy_version=tensors["policy_version"],
        trajectories=trajectories,
    )
