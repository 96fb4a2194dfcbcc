"""Masks as bits: on the wire, in unrolls, and back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from simul.common.client.steps import pack_step
from simul.common.errors import ProtocolError
from simul.common.protocol.decisions import Decision
from simul.common.protocol.masks import PACKED_FROM, list_legal, no_bits_beyond, pack_masks, unpack_masks
from simul.common.protocol.messages import TRUNCATED
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.inference_server.sessions.row_checks import unpack_step
from simul.inference_server.unrolls.buffer import UnrollBuffer
from simul.learner.io.rejected import RejectedError
from simul.learner.io.unrolls import UnrollChecker
from simul.learner.training.minibatches import make_minibatch

SMALL = GameSpec("small", 2, 13)
LARGE = GameSpec("large", 3200, 30_433, observation_dtype="uint8")


def random_masks(rows: int, spec: GameSpec) -> np.ndarray:
    masks = (np.random.default_rng(rows).random((rows, spec.num_actions)) < 0.1).astype(np.uint8)
    masks[:, 5] = 1
    return masks


def step(spec: GameSpec, masks: np.ndarray) -> dict[str, np.ndarray]:
    observation = np.zeros(spec.observation_size, spec.dtype())
    return pack_step(1, [Decision(i, 0, 0, 0, observation=observation, mask=m) for i, m in enumerate(masks)], spec)[1]


@pytest.mark.parametrize("actions", [1, 7, 8, 9, 13, 1024, 30_433])
def test_packing_and_back(actions):
    masks = random_masks(3, GameSpec("x", 1, max(actions, 6)))[:, :actions]
    bits = pack_masks(masks)
    assert bits.shape == (3, -(-actions // 8))
    assert (unpack_masks(bits, actions) == masks).all()
    assert no_bits_beyond(bits, actions).all()
    if actions % 8:
        bits[1, -1] |= 128
        assert no_bits_beyond(bits, actions).tolist() == [True, False, True]


def test_legal_actions_are_listed_row_by_row():
    mask = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]], np.uint8)
    for kind in (np.uint8, np.bool_):
        ids, counts = list_legal(mask.astype(kind))
        assert ids.tolist() == [[1, 3, 0], [0, 0, 0], [0, 1, 2]]
        assert counts.tolist() == [2, 0, 3]


def test_masks_of_many_actions_travel_packed_and_those_of_few_as_before():
    for spec, width in ((SMALL, 13), (LARGE, 3805)):
        masks = random_masks(4, spec)
        tensors = step(spec, masks)
        assert tensors["mask"].shape == (4, width)
        rows = unpack_step(spec, tensors)
        assert (rows.mask == masks).all()
        assert rows.has_legal.all()


def test_any_client_may_pack():
    masks = random_masks(4, SMALL)
    masks[2] = 0
    tensors = step(SMALL, masks)
    packed = tensors | {"mask": pack_masks(masks)}
    packed["mask"][3, -1] |= 128
    rows = unpack_step(SMALL, packed)
    assert (rows.mask[:3] == masks[:3]).all()
    assert rows.has_legal.tolist() == [True, True, False, False], "no action; a bit beyond the last action"
    assert rows.plain.tolist() == [True, True, False, False]
    with pytest.raises(ProtocolError, match="mask"):
        unpack_step(SMALL, tensors | {"mask": np.ones((4, 3), np.uint8)})


def recorded(spec: GameSpec, masks: np.ndarray, kind: int | None):
    """The unroll of `len(masks) - 1` steps, each with the legal action 5."""
    buffer = UnrollBuffer(spec, 8, state_size=1, capacity=1)
    row = np.array([buffer.open()])
    observation = np.zeros((1, spec.observation_size), spec.dtype())
    buffer.begin(row, np.zeros((1, 1), np.float32))
    one, steps = np.ones(1, np.float32), masks[:-1] if kind else masks
    for at, mask in enumerate(steps):
        if at == 8:
            return next(buffer.close_full(row, observation, mask[None], one))
        buffer.append(row, np.zeros(1, np.bool_), observation, mask[None], np.array([5], np.int32), -one, one, 3)
    return buffer.end(int(row[0]), kind, observation[0], "")


@pytest.mark.parametrize("spec", [SMALL, LARGE])
@pytest.mark.parametrize("kind", [None, TRUNCATED])
def test_recorded_masks_reach_the_loss_as_they_were(spec, kind):
    masks = random_masks(9 if kind is None else 5, spec)
    found = recorded(spec, masks, kind)
    checker = UnrollChecker(spec, 1, 8)
    batch = make_minibatch([checker.check(found.message, found.tensors)], 0.9, torch.device("cpu"))
    steps = found.message.length
    assert batch.mask.shape == (steps + 1, 1, spec.num_actions)
    assert (batch.mask[:steps, 0].numpy() == masks[:steps]).all()
    assert (batch.trajectories.mask[:, 0].numpy() == masks[:steps]).all()
    last = np.ones(spec.num_actions) if kind else masks[8]
    assert (batch.mask[steps, 0].numpy() == last).all()
    found.tensors["mask"][:] = 0
    with pytest.raises(RejectedError, match="not legal by its own mask"):
        checker.check(found.message, found.tensors)


def test_a_recorded_session_of_30433_actions_takes_a_quarter_of_a_megabyte():
    place = UnrollLayout(LARGE, 32, 0).place_bytes
    assert place == 33 * (3200 + 3805 + 4 * 4 + 8) + 8
    assert LARGE.num_actions > PACKED_FROM > SMALL.num_actions
