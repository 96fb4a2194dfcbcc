"""What a server sent before it ended is in the last report of the learner, however late the learner reads."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.stand import exchange
from tests.support.unroll_receiver_stand import UnrollReceiverStand
from tests.support.waiting import wait_for


@pytest.fixture(params=[True, False], ids=["memory", "socket"])
def stand(request, patience) -> Iterator[UnrollReceiverStand]:
    with UnrollReceiverStand(shared_memory=request.param) as stand:
        yield stand


def test_a_learner_that_stops_takes_in_what_was_sent_to_it(stand) -> None:
    link, receiver = stand.server._recorder._link, stand.learner.receiver
    client, receive, late = stand.client("a"), receiver._receive, []
    wait_for(lambda: link.alive(time.monotonic()) and link.credit_left)

    def read_late() -> None:
        """Nothing before the stop, and nothing in the turn in which it comes."""
        if receiver._closing and late:
            receive()
        elif receiver._closing:
            late.append(True)

    receiver._receive = read_late
    for step in range(2):
        exchange(client, [stand.decision(0, step)])
    exchange(client, stand.ends(2, 0))
    wait_for(lambda: stand.server.metrics()["unrolls"]["sent"] == 1)
    assert receiver.account()["received"] == 0
    receiver.finish()
    assert receiver.account()["received"] == 1
