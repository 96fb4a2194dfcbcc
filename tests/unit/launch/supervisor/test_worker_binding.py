"""Which server each worker plays on."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simul.launch.supervisor.worker_binding import LOST_AFTER_SEC, WorkerBinding, bind_workers


@given(st.integers(0, 40), st.sets(st.integers(0, 20), min_size=1, max_size=8))
def test_every_worker_has_a_server_and_no_server_more_than_its_part(workers, servers):
    bound = bind_workers(workers, servers)
    assert sorted(bound) == list(range(workers))
    assert set(bound.values()) <= servers
    assert max(Counter(bound.values()).values(), default=0) <= -(-workers // len(servers))
    assert bind_workers(workers, sorted(servers, reverse=True)) == bound, "the same in every start"


@given(st.integers(1, 40), st.sets(st.integers(0, 20), min_size=2, max_size=8), st.data())
def test_where_a_server_is_lost_only_its_workers_move(workers, servers, data):
    lost = data.draw(st.sampled_from(sorted(servers)))
    before = bind_workers(workers, servers)
    after = bind_workers(workers, servers - {lost}, before)
    assert {worker for worker in before if before[worker] != after[worker]} == {
        worker for worker, server in before.items() if server == lost
    }
    assert max(Counter(after.values()).values()) <= -(-workers // (len(servers) - 1))


def test_workers_of_one_server_and_none():
    assert bind_workers(3, [0]) == {0: 0, 1: 0, 2: 0}
    with pytest.raises(ValueError, match="at least one server"):
        bind_workers(3, [])


def test_workers_move_where_their_server_has_not_worked_for_long_and_only_then():
    binding = WorkerBinding(4, 2)
    before = dict(binding.bound)
    orphans = {worker for worker, server in before.items() if server == 1}
    both, first = {0: True, 1: True}, {0: True, 1: False}
    assert not binding.update(both, 0.0)
    assert not binding.update(first, 1.0)
    assert not binding.update(first, LOST_AFTER_SEC)
    assert not binding.update(both, LOST_AFTER_SEC + 0.5), "restarted in time"
    assert not binding.update(first, 1.0)
    binding.exclude_pause(LOST_AFTER_SEC)
    assert not binding.update(first, 2 * LOST_AFTER_SEC)
    assert binding.update(first, 2 * LOST_AFTER_SEC + 1.0) == dict.fromkeys(orphans, 0)
    assert not binding.update(both, 2 * LOST_AFTER_SEC + 2.0), "no worker loses its games because a server is back"
    assert set(binding.bound.values()) == {0}


def test_workers_of_a_late_server_start_on_the_others_and_go_to_it_once_it_works():
    binding = WorkerBinding(4, 2)
    before = dict(binding.bound)
    waiting = {worker for worker, server in before.items() if server == 1}
    binding.start_without([1])
    assert set(binding.bound.values()) == {0}
    assert not binding.take_back({0: True, 1: False})
    assert not binding.update({0: True, 1: False}, 0.0)
    assert binding.take_back({0: True, 1: True}) == dict.fromkeys(waiting, 1)
    assert binding.bound == before
    assert not binding.take_back({0: True, 1: True}), "once"


def test_the_worker_of_a_late_server_starts_on_one_that_is_ready_and_had_no_worker():
    binding = WorkerBinding(1, 2)
    late = binding.bound[0]
    binding.start_without([late])
    assert binding.bound == {0: 1 - late}
    assert binding.take_back({0: True, 1: True}) == {0: late}


def test_where_every_server_is_late_workers_keep_theirs():
    binding = WorkerBinding(4, 2)
    before = dict(binding.bound)
    binding.start_without([0, 1])
    assert binding.bound == before
    assert not binding.take_back({0: True, 1: True})


def test_workers_stay_where_no_server_works():
    binding = WorkerBinding(4, 2)
    neither = {0: False, 1: False}
    assert not binding.update(neither, 0.0)
    assert not binding.update(neither, 2 * LOST_AFTER_SEC)
    assert binding.update({0: False, 1: True}, 2 * LOST_AFTER_SEC + 1.0), "as soon as one does"
