"""Evaluations and steps take turns."""

from __future__ import annotations

from typing import Any, cast

from simul.inference_server.serving.evaluation import STEPS_BETWEEN, Evaluator


def test_evaluations_get_a_fifth_while_steps_wait_and_everything_otherwise() -> None:
    evaluator = Evaluator(*(cast(Any, None),) * 5, max_batch=8)
    assert not evaluator.has_turn(steps_wait=False)
    evaluator.waiting = 1
    turns = [evaluator.has_turn(steps_wait=True) for _ in range(20)]
    assert sum(turns) == 4
    assert turns[: STEPS_BETWEEN + 1] == [False] * STEPS_BETWEEN + [True]
    assert all(evaluator.has_turn(steps_wait=False) for _ in range(5))
