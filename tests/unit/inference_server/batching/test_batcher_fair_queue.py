"""Clients share a batch equally; whoever floods waits behind itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from simul.inference_server.batching.batcher import FairQueue
from simul.inference_server.serving.bisect_failure import split_in_halves


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


def _rows(taken: list[_Portion]) -> list[tuple[str, int]]:
    return [row for portion in taken for row in portion.rows]


def test_a_flood_takes_its_share_and_what_the_others_leave() -> None:
    queue = _queue(("flood", 500), ("flood", 500), ("a", 8), ("b", 30))
    first = Counter(client for client, _ in _rows(queue.take_rows(60)))
    assert first == {"flood": 26, "a": 8, "b": 26}
    assert Counter(client for client, _ in _rows(queue.take_rows(60))) == {"flood": 56, "b": 4}


def test_with_more_clients_than_room_everyone_has_a_turn() -> None:
    queue = _queue(*((f"c{i}", 2) for i in range(10)))
    first, second = (_rows(queue.take_rows(5)) for _ in range(2))
    assert len({client for client, _ in first + second}) == 10


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), max_size=12), st.integers(1, 10))
def test_every_row_comes_out_once_in_its_clients_order(sizes, room) -> None:
    queue, seen = _queue(*sizes), []
    while queue:
        taken = _rows(queue.take_rows(room))
        assert 0 < len(taken) <= room
        seen += taken
    assert len(seen) == sum(n for _, n in sizes)
    for client in "abc":
        assert [i for c, i in seen if c == client] == list(range(sum(n for c, n in sizes if c == client)))


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6))
def test_halves_are_halves(sizes) -> None:
    batch = [_Portion("a", i, [("a", 10 * i + j) for j in range(n)]) for i, n in enumerate(sizes)]
    first, second = split_in_halves(batch)
    assert _rows(first) + _rows(second) == _rows(batch)
    assert len(_rows(first)) == sum(sizes) // 2
    assert all(len(portion) for portion in first + second)
