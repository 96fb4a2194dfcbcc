"""Rows in flight, and who may send more."""

from __future__ import annotations

from typing import Any, cast

from simul.inference_server.serving.evaluation import STEPS_BETWEEN, Evaluator
from simul.inference_server.sessions.clients import InFlight


def test_room_is_of_each_client_and_of_all() -> None:
    a, b, limits = cast(Any, "a"), cast(Any, "b"), InFlight(limit=15, client_limit=10, max_batch=4)
    limits.add(a, 10)
    assert not limits.has_room(a, 1)
    assert limits.has_room(b, 5)
    assert not limits.has_room(b, 6)
    limits.remove(a, 8)
    assert limits.has_room(a, 8)
    assert (limits.of(a), limits.of(b), limits.total) == (2, 0, 2)


def test_the_hint_grows_with_the_queue_and_the_forward() -> None:
    limits = InFlight(limit=1000, client_limit=1000, max_batch=10)
    limits.last_batch_sec = 0.004
    assert limits.retry_after_ms() == 4
    limits.add(cast(Any, "a"), 95)
    assert limits.retry_after_ms() == 40
    limits.last_batch_sec = 10.0
    assert limits.retry_after_ms() == 1000


def test_evaluations_get_a_fifth_while_steps_wait_and_everything_otherwise() -> None:
    evaluator = Evaluator(*(cast(Any, None),) * 5, max_batch=8)
    assert not evaluator.has_turn(steps_wait=False)
    evaluator.waiting = 1
    turns = [evaluator.has_turn(steps_wait=True) for _ in range(20)]
    assert sum(turns) == 4
    assert turns[: STEPS_BETWEEN + 1] == [False] * STEPS_BETWEEN + [True]
    assert all(evaluator.has_turn(steps_wait=False) for _ in range(5))
