"""EVALUATE at the client: what is sent, and where the answers of rows end up."""

from __future__ import annotations

import numpy as np
import pytest

from simul.common.client.evaluation import PendingEvaluations, pack_evaluate
from simul.common.protocol.masks import pack_masks
from simul.common.protocol.messages import Error, Evaluated
from simul.common.protocol.specs import GameSpec

SPEC = GameSpec("test", observation_size=2, num_actions=11)
ROWS = 5


def test_priors_are_kept_by_legal_action_whatever_the_order_of_the_answers() -> None:
    draw = np.random.default_rng(1)
    mask = draw.random((ROWS, SPEC.num_actions)) < 0.4
    mask[:, 3] = True
    observation = draw.random((ROWS, 2), np.float32)
    dense = np.where(mask, np.random.default_rng(2).random(mask.shape, np.float32), 0)

    def answered(rows: list[int]) -> dict[str, np.ndarray]:
        value = np.array(rows, np.float32)
        return {"row": np.array(rows, np.int32), "value": value, "priors": dense[rows][mask[rows]]}

    message, tensors = pack_evaluate(7, observation, pack_masks(mask), SPEC, packed=True)
    pending = PendingEvaluations()
    pending.add(message, tensors, SPEC.num_actions)
    for rows in ([3, 0], [4]):
        assert pending.apply_evaluated(Evaluated(id=7, policy_version=2), answered(rows)) == []
    assert pending.apply_error(Error(code="ERR_INTERNAL", message="not finite", id=7, rows=(1,))) == []
    (found,) = pending.apply_evaluated(Evaluated(id=7, policy_version=3), answered([2]))
    for row in (0, 2, 3, 4):
        assert found.legal_priors[found.first[row] : found.first[row + 1]].tolist() == dense[row][mask[row]].tolist()
    dense[1] = 0
    assert found.priors.tolist() == dense.tolist()
    assert found.value[[0, 2, 3, 4]].tolist() == [0, 2, 3, 4]
    assert found.policy_version.tolist() == [2, -1, 3, 2, 2]
    assert found.errors == {1: ("ERR_INTERNAL", "not finite")}
    assert len(pending) == 0


@pytest.mark.parametrize(
    ("mask", "packed", "wrong"),
    [
        (np.ones((1, 2), np.uint8), False, r"masks \[N, 11\], got \[1, 2\] and \[1, 2\]"),
        (np.ones((1, 11), np.uint8), True, r"masks \[N, 2\], got \[1, 2\] and \[1, 11\]"),
        (np.array([[255, 8]], np.uint8), True, "bits beyond those of the 11 actions"),
    ],
)
def test_masks_that_are_none_are_refused(mask: np.ndarray, packed: bool, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        pack_evaluate(1, np.zeros((1, 2)), mask, SPEC, packed=packed)
