"""Whose life a client's name is, and what a client is told of the end of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simul.common.errors import ERR_CAPACITY, InferenceError
from simul.common.protocol.messages import START, Close
from tests.support.raw_client import RawClient
from tests.support.stand import Stand, exchange
from tests.support.waiting import wait_for

pytestmark = pytest.mark.usefixtures("patience")


@pytest.fixture
def stand() -> Iterator[Stand]:
    with Stand() as running:
        yield running


def test_a_stranger_does_not_end_a_training_clients_life_by_taking_its_name(stand):
    worker = stand.client("worker-0")
    assert exchange(worker, [stand.decision(0, 0)]).actions
    stranger = stand.client("worker-0", training=False, run_id=2**62)
    assert exchange(worker, [stand.decision(0, 1)]).actions
    assert exchange(stranger, [stand.decision(0, 0, flags=START)]).actions
    assert exchange(worker, [stand.decision(0, 2)]).actions


def test_who_is_outlived_by_a_newer_life_is_told(stand):
    older = stand.client("worker-0", run_id=1)
    stand.client("worker-0", run_id=2)
    with pytest.raises(InferenceError, match="an older life"):
        exchange(older, [stand.decision(0, 0)])


def test_a_row_that_stands_twice_in_a_message_is_answered_once_and_refused_once(stand):
    client = stand.client("a")
    replies = exchange(client, [stand.decision(0, 0), stand.decision(0, 0)])
    assert len(replies.actions) == 1
    assert [failure.code for failure in replies.failures] == ["ERR_ORDER"]
    assert exchange(client, [stand.decision(0, 1)]).actions


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb", "\x1b[2J"])
def test_a_clients_name_is_short_and_printable(stand, name):
    with pytest.raises(InferenceError, match="printable"):
        stand.client(name)


def test_a_stranger_takes_its_share_of_the_sessions_and_the_runs_own_take_all_that_are_free():
    with Stand(max_sessions=16, max_sessions_of_client=0) as stand:
        stranger, other = (stand.client(name, training=False) for name in ("stranger", "other"))
        replies = exchange(stranger, [stand.decision(env, 0, flags=START) for env in range(10)])
        assert len(replies.actions) == 8
        assert {(failure.env, failure.code) for failure in replies.failures} == {(8, ERR_CAPACITY), (9, ERR_CAPACITY)}
        assert "8 sessions of yours" in replies.failures[0].message
        assert len(exchange(other, [stand.decision(0, 0, flags=START)]).actions) == 1
        assert len(exchange(stand.client("worker"), [stand.decision(env, 0) for env in range(8)]).actions) == 7
        exchange(stranger, stand.ends(1, 0))
        assert len(exchange(stranger, [stand.decision(8, 0, flags=START)]).actions) == 1


def test_where_the_clients_are_at_their_limit_the_runs_own_are_let_in_and_others_when_one_has_left():
    with Stand(max_clients=2) as stand, RawClient(stand.run_dir.endpoint("data"), stand.spec) as first:
        welcome = first.hello("first")
        assert (welcome.limits["clients"], welcome.limits["sessions_of_client"]) == (2, 63)
        stand.client("worker-0")
        with pytest.raises(InferenceError, match="2 clients are here") as full:
            stand.client("second", training=False)
        assert full.value.code == ERR_CAPACITY
        assert first.hello("first").resumed
        newer = first.hello("first", run_id=2)  # takes the place of the older life
        assert (newer.resumed, newer.token == welcome.token) == (False, False)
        stand.client("worker-0", run_id=2)
        first.send(Close())
        wait_for(lambda: stand.server.metrics()["clients"] == 1)
        stand.client("second", training=False)
        stand.client("worker-1")
        assert stand.server.metrics()["clients"] == 3
