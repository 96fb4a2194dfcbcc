"""Batches: work-conserving, of one policy, never over the limit, nobody starves, training waits for a full learner."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from simul.inference_server.batching.batcher import Batcher, Chunk


def _chunk(n: int, policy: str = "learner", at: float = 0.0, recorded: bool = True) -> Chunk:
    return Chunk(
        cast(Any, None),
        1,
        policy,
        recorded,
        at,
        np.zeros((n, 2)),
        np.ones((n, 2)),
        np.arange(n),
        np.arange(n),
        np.ones(n, np.int64),
        np.zeros(n, np.bool_),
    )


def _rows(batch: list[Chunk]) -> int:
    return sum(len(chunk) for chunk in batch)


def test_takes_all_that_is_there_up_to_the_limit_in_order() -> None:
    batcher = Batcher(max_batch=10)
    for at in range(4):
        batcher.queue_chunk(_chunk(4, at=at))
    first, second, third = batcher.take_batch(), batcher.take_batch(), batcher.take_batch()
    assert [_rows(b) for b in (first, second, third)] == [10, 6, 0]
    assert [chunk.arrived_at for chunk in first + second] == [0, 1, 2, 2, 3]
    assert [row for chunk in first + second if chunk.arrived_at == 2 for row in chunk.rows.tolist()] == [0, 1, 2, 3]
    assert batcher.waiting == 0


def test_one_policy_a_batch_and_the_longest_waiting_goes_first() -> None:
    batcher = Batcher(max_batch=100)
    batcher.queue_chunk(_chunk(1, "past", at=1.0))
    for at in (2.0, 3.0):
        batcher.queue_chunk(_chunk(5, "learner", at=at))
    assert {chunk.policy for chunk in batcher.take_batch()} == {"past"}
    assert _rows(batcher.take_batch()) == 10


def test_recorded_and_unrecorded_rows_of_a_policy_share_a_batch() -> None:
    batcher = Batcher(max_batch=100)
    batcher.queue_chunk(_chunk(3, recorded=True))
    batcher.queue_chunk(_chunk(2, recorded=False))
    assert _rows(batcher.take_batch()) == 5


def test_training_rows_wait_for_a_full_learner_and_others_do_not() -> None:
    batcher = Batcher(max_batch=100)
    batcher.queue_chunk(_chunk(3, recorded=True, at=0.0))
    batcher.queue_chunk(_chunk(2, recorded=False, at=1.0))
    assert _rows(batcher.take_batch(training_open=False)) == 2
    assert batcher.take_batch(training_open=False) == []
    assert batcher.waiting == 3
    assert _rows(batcher.take_batch(training_open=True)) == 3


def test_late_rows_are_taken_out_whoever_waits_in_front_of_them() -> None:
    batcher = Batcher(max_batch=4)
    batcher.queue_chunk(_chunk(6, at=0.0))
    for at, deadline in ((1.0, 5.0), (2.0, 9.0), (3.0, 5.0)):
        chunk = _chunk(2, "past", at=at)
        chunk.deadline = deadline
        batcher.queue_chunk(chunk)
    assert batcher.next_deadline == 5.0
    assert batcher.take_expired(4.9) == []
    assert [chunk.arrived_at for chunk in batcher.take_expired(5.0)] == [1.0, 3.0]
    assert (batcher.waiting, batcher.next_deadline) == (8, 9.0)
    assert [_rows(batcher.take_batch()) for _ in range(4)] == [4, 2, 2, 0]
    assert batcher.take_expired(10.0) == []
    assert batcher.next_deadline == math.inf
