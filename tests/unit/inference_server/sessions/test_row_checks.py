"""What is wrong with single rows, found by the compiled loop, against numpy; frames of a message lie anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simul.common.client.steps import pack_step
from simul.common.errors import ERR_DENIED, ERR_SHAPE, ERR_VALUE, ProtocolError
from simul.common.protocol.decisions import Decision
from simul.common.protocol.messages import DECISION, TERMINATED
from simul.common.protocol.specs import GameSpec
from simul.inference_server.sessions.row_checks import unpack_step

D, A = 9, 4
STRANGE = [np.nan, np.inf, -np.inf]


def _unaligned(array: np.ndarray) -> np.ndarray:
    """The same numbers, read-only, one byte off every boundary."""
    return np.frombuffer(b"x" + array.tobytes(), array.dtype, offset=1).reshape(array.shape)


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.sampled_from(("float16", "float32")), st.booleans())
def test_rows_are_judged_as_numpy_judges_them(seed: int, n: int, dtype: str, aligned: bool) -> None:
    rng = np.random.default_rng(seed)
    observation = (rng.standard_normal((n, D)) * 1000).astype(dtype)
    strange = rng.random((n, D)) < 0.02
    observation[strange] = rng.choice(STRANGE, int(strange.sum()))
    observation[rng.random((n, D)) < 0.1] = np.finfo(dtype).max
    reward = rng.choice([0.0, 1.5, *STRANGE], n, p=[0.6, 0.3, 0.04, 0.03, 0.03]).astype(np.float32)
    mask = rng.choice([0, 1, 2, 255], (n, A), p=[0.6, 0.38, 0.01, 0.01]).astype(np.uint8)
    kind = rng.choice([DECISION, TERMINATED], n, p=[0.9, 0.1]).astype(np.uint8)
    flags = rng.choice([0, 7, 8, 255], n, p=[0.9, 0.08, 0.01, 0.01]).astype(np.uint8)
    tensors = {
        "keys": np.zeros((n, 5), np.int64), "kind": kind, "flags": flags, "reward": reward,
        "policy": np.zeros(n, np.uint8), "observation": observation, "mask": mask,
    }  # fmt: skip
    if not aligned:
        tensors = {name: _unaligned(array) for name, array in tensors.items()}
    rows = unpack_step(GameSpec("test/rows", D, A, observation_dtype=dtype), tensors)
    assert rows.finite.tolist() == (np.isfinite(observation).all(axis=1) & np.isfinite(reward)).tolist()
    assert rows.has_legal.tolist() == ((mask <= 1).all(axis=1) & mask.any(axis=1)).tolist()
    assert rows.plain.tolist() == (rows.finite & rows.has_legal & (kind == DECISION) & (flags <= 7)).tolist()
    for i in np.flatnonzero(~rows.finite):
        assert "expected" in rows.describe_not_finite(i)


def test_bytes_are_finite_whatever_they_are() -> None:
    observation = np.arange(2 * D, dtype=np.uint8).reshape(2, D) + 230
    tensors = {
        "keys": np.zeros((2, 5), np.int64), "kind": np.zeros(2, np.uint8), "flags": np.zeros(2, np.uint8),
        "reward": np.array([0.0, np.nan], np.float32), "policy": np.zeros(2, np.uint8), "observation": observation,
        "mask": np.ones((2, A), np.uint8),
    }  # fmt: skip
    rows = unpack_step(GameSpec("test/rows", D, A, observation_dtype="uint8"), tensors)
    assert rows.finite.tolist() == rows.plain.tolist() == [True, False]
    np.testing.assert_array_equal(rows.final_observation(0), observation[0])
    with pytest.raises(ProtocolError, match="expected uint8"):
        unpack_step(GameSpec("test/rows", D, A, observation_dtype="uint8"), tensors | {"observation": np.zeros((2, D))})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("observation", None),
        ("observation", np.zeros((2, D))),
        ("observation", np.zeros((2, D, 1), np.float32)),
        ("observation", np.zeros((2, D + 1), np.float32)),
        ("mask", np.ones((1, A), np.uint8)),
        ("mask", np.ones((2, A), np.int8)),
        ("keys", np.zeros((2, 4), np.int64)),
        ("temperature", np.ones((2, 1), np.float32)),
        ("comment", np.zeros(3, np.uint8)),
    ],
)
def test_a_tensor_that_is_not_as_promised_is_err_shape(name: str, wrong: np.ndarray | None) -> None:
    spec = GameSpec("test/rows", D, A)
    row = Decision(0, 0, 0, 0, observation=np.zeros(D), mask=np.ones(A), temperature=0.5)
    _, tensors = pack_step(1, [row, row], spec)
    assert unpack_step(spec, tensors).plain.all()
    changed = {key: tensor for key, tensor in tensors.items() if key != name} | ({} if wrong is None else {name: wrong})
    with pytest.raises(ProtocolError, match=name) as refused:
        unpack_step(spec, changed)
    assert refused.value.code == ERR_SHAPE


def _labelled(label: np.ndarray) -> dict[str, np.ndarray]:
    n = len(label)
    return {
        "keys": np.zeros((n, 5), np.int64), "kind": np.zeros(n, np.uint8), "flags": np.zeros(n, np.uint8),
        "reward": np.zeros(n, np.float32), "policy": np.zeros(n, np.uint8), "observation": np.zeros((n, D), np.float32),
        "mask": np.ones((n, A), np.uint8), "label": _unaligned(label),
    }  # fmt: skip


def test_labels_are_classes_or_one_of_two_other_numbers() -> None:
    spec = GameSpec("test/rows", D, A, opponent_labels=2, opponent_classes=9)
    label = np.array([[-1, -1], [0, 8], [-2, -2], [9, 0], [0, -3]], np.int16)
    rows = unpack_step(spec, _labelled(label))
    assert rows.plain.tolist() == [True, True, True, False, False]
    assert rows.labelled is not None
    assert rows.labelled.tolist() == [False, True, True, True, True]
    rows.check_label(0, unrecorded=True)
    rows.check_label(1, unrecorded=False)
    for row, code, unrecorded in ((3, ERR_VALUE, False), (4, ERR_VALUE, True), (1, ERR_DENIED, True)):
        with pytest.raises(ProtocolError) as caught:
            rows.check_label(row, unrecorded=unrecorded)
        assert caught.value.code == code
    for wrong, code in (
        (label[:, :1], ERR_SHAPE), (label[:2], ERR_SHAPE), (label.astype(np.int32), ERR_SHAPE), (label, ERR_VALUE),
    ):  # fmt: skip
        of = GameSpec("test/rows", D, A) if code == ERR_VALUE else spec
        with pytest.raises(ProtocolError) as caught:
            unpack_step(of, {**_labelled(label), "label": wrong})
        assert caught.value.code == code
