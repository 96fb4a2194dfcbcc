"""Rows that were submitted: what their sender learns of a refusal."""

from __future__ import annotations

import numpy as np
import pytest

from simul.common.client.evaluation import pack_evaluate
from simul.common.client.steps import PendingSteps, check_shapes
from simul.common.errors import ERR_DEADLINE, ERR_ORDER
from simul.common.protocol.decisions import Decision
from simul.common.protocol.messages import TERMINATED, Error
from simul.common.protocol.specs import GameSpec


def test_a_refused_row_comes_back_with_the_servers_advice_when_to_try_again() -> None:
    pending = PendingSteps()
    rows = [Decision(env=env, seat=0, episode=0, step=0, observation=np.zeros(3), mask=np.ones(2)) for env in range(2)]
    pending.mark_sent(7, pending.add_rows(rows, deadline_ms=5), now=0.0)
    (late,) = pending.apply_error(Error(code=ERR_DEADLINE, message="late", id=7, rows=(1,), retry_after_ms=12))
    assert (late.env, late.code, late.message, late.retry_after_ms) == (1, ERR_DEADLINE, "late", 12)
    (wrong,) = pending.apply_error(Error(code=ERR_ORDER, message="a gap", id=7))
    assert (wrong.env, wrong.retry_after_ms) == (0, 0)
    assert pending.waiting == 0


@pytest.mark.parametrize(
    ("observation", "mask", "wrong"),
    [
        (np.zeros((1, 6)), np.ones(2), r"the observation of env 4 seat 1 has shape \[1, 6\]; the game test .* \[6\]"),
        (np.zeros((2, 3)), np.ones(2), r"has shape \[2, 3\]"),
        (np.zeros(1), np.ones(2), r"has shape \[1\]"),
        (np.float32(0.5), np.ones(2), r"has shape \[\]"),
        (np.zeros(6), np.ones(1), r"the mask of env 4 seat 1 has shape \[1\]; the game test .* \[2\]"),
        (np.zeros(6), np.ones((1, 2)), r"the mask of env 4 seat 1 has shape \[1, 2\]"),
    ],
)
def test_what_numpy_would_spread_over_a_row_is_refused_with_its_shape(observation, mask, wrong) -> None:
    spec = GameSpec("test", observation_size=6, num_actions=2)
    row = Decision(env=4, seat=1, episode=0, step=0, observation=observation, mask=mask)
    with pytest.raises(ValueError, match=wrong):
        check_shapes([row], spec)
    end = Decision(env=4, seat=1, episode=0, step=1, kind=TERMINATED)
    check_shapes([Decision(env=0, seat=0, episode=0, step=0, observation=np.zeros(6), mask=np.ones(2)), end], spec)


def test_floats_are_not_cut_down_to_bytes() -> None:
    spec = GameSpec("test", 2, 2, "uint8")
    row = Decision(env=4, seat=1, episode=0, step=0, observation=np.array([7, 255], np.uint8), mask=np.ones(2))
    check_shapes([row], spec)
    pack_evaluate(1, [row.observation], [row.mask], spec)
    row.observation = np.array([0.5, 1.0], np.float32)
    for refused in (lambda: check_shapes([row], spec), lambda: pack_evaluate(1, [row.observation], [row.mask], spec)):
        with pytest.raises(ValueError, match="dtype float32; the game test expects uint8"):
            refused()
