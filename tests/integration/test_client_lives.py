"""Whose life a client's name is, and what a client is told of the end of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simul.common.errors import InferenceError
from tests.support.stand import Stand, exchange

pytestmark = pytest.mark.usefixtures("patience")


@pytest.fixture
def stand() -> Iterator[Stand]:
    with Stand() as running:
        yield running


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
