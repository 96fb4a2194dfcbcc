"""What a server sent before it ended is in the last report of the learner, however late the learner reads."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.learner_io_stand import LearnerIOStand
from tests.support.stand import exchange
from tests.support.waiting import wait_for


@pytest.fixture(params=[True, False], ids=["memory", "socket"])
def stand(request, patience) -> Iterator[LearnerIOStand]:
    with LearnerIOStand(shared_memory=request.param) as stand:
        yield stand


def test_a_learner_that_stops_takes_in_what_was_sent_to_it(stand, monkeypatch) -> None:
    link, io, socket = stand.server._recorder._link, stand.learner.io, stand.learner.sockets[0]
    client, receive, late = stand.client("a"), socket.receive, []
    wait_for(lambda: link.alive(time.monotonic()) and link.credit_left)

    def receive_late() -> object:
        """Nothing before the stop, and nothing in the turn in which it comes."""
        if io._shared.closing and late:
            return receive()
        late.extend([True] * io._shared.closing)
        return None

    monkeypatch.setattr(socket, "receive", receive_late)
    for step in range(2):
        exchange(client, [stand.decision(0, step)])
    exchange(client, stand.ends(2, 0))
    wait_for(lambda: stand.server.metrics()["unrolls"]["sent"] == 1)
    assert io.unrolls.account()["received"] == 0
    io.finish()
    assert io.unrolls.account()["received"] == 1
