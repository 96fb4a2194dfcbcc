"""Batches: work-conserving, of one policy, never over the limit, shared equally; training waits for a full learner."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simul.inference_server.batching.batcher import Batcher, Chunk, FairQueue
from simul.inference_server.serving.bisect_failure import split_in_halves


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


@dataclass
class _Portion:
    client: str
    arrived_at: float
    rows: list[tuple[str, int]]

    def __len__(self) -> int:
        return len(self.rows)

    def pick(self, which: slice) -> _Portion:
        return _Portion(self.client, self.arrived_at, self.rows[which])


def _queue(*sizes: tuple[str, int]) -> FairQueue[_Portion]:
    queue: FairQueue[_Portion] = FairQueue()
    numbers: Counter[str] = Counter()
    for at, (client, n) in enumerate(sizes):
        queue.append(_Portion(client, at, [(client, numbers[client] + i) for i in range(n)]))
        numbers[client] += n
    return queue


def _taken(taken: list[_Portion]) -> list[tuple[str, int]]:
    return [row for portion in taken for row in portion.rows]


def test_a_flood_takes_its_share_and_what_the_others_leave() -> None:
    queue = _queue(("flood", 500), ("flood", 500), ("a", 8), ("b", 30))
    first = Counter(client for client, _ in _taken(queue.take_rows(60)))
    assert first == {"flood": 26, "a": 8, "b": 26}
    assert Counter(client for client, _ in _taken(queue.take_rows(60))) == {"flood": 56, "b": 4}


def test_with_more_clients_than_room_everyone_has_a_turn() -> None:
    queue = _queue(*((f"c{i}", 2) for i in range(10)))
    first, second = (_taken(queue.take_rows(5)) for _ in range(2))
    assert len({client for client, _ in first + second}) == 10


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), max_size=12), st.integers(1, 10))
def test_every_row_comes_out_once_in_its_clients_order(sizes, room) -> None:
    queue, seen = _queue(*sizes), []
    while queue:
        taken = _taken(queue.take_rows(room))
        assert 0 < len(taken) <= room
        seen += taken
    assert len(seen) == sum(n for _, n in sizes)
    for client in "abc":
        assert [i for c, i in seen if c == client] == list(range(sum(n for c, n in sizes if c == client)))


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6))
def test_halves_are_halves(sizes) -> None:
    batch = [_Portion("a", i, [("a", 10 * i + j) for j in range(n)]) for i, n in enumerate(sizes)]
    first, second = split_in_halves(batch)
    assert _taken(first) + _taken(second) == _taken(batch)
    assert len(_taken(first)) == sum(sizes) // 2
    assert all(len(portion) for portion in first + second)
