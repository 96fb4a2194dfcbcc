"""A real server and the learner's own I/O thread: weights lie in memory, or come by the socket."""

from __future__ import annotations

import sys
import time

import pytest

from tests.support.anonymous import anonymous_files
from tests.support.learner_io_stand import LearnerIOStand
from tests.support.stand import exchange
from tests.support.waiting import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="granted on Linux only")

VERSIONS = 10


def _publish(stand: LearnerIOStand, version: int) -> None:
    stand.learner.io.publish("learner", version, stand.weights(seed=version), ("learner",))


def _figures(stand: LearnerIOStand) -> tuple[int, int, int]:
    metrics = stand.server.metrics()
    return metrics["swaps"], metrics["weights_in_memory"], metrics["weights_unreadable"]


def test_weights_are_read_where_they_lie_and_their_memory_goes_with_them() -> None:
    with LearnerIOStand() as stand:
        assert _figures(stand) == (1, 1, 0)
        client = stand.client("a")
        wait_for(lambda: stand.server._recorder._link.reads_memory(time.monotonic()))  # of which files are open, too
        before = anonymous_files()
        for version in range(1, VERSIONS + 1):
            _publish(stand, version)
            wait_for(lambda swaps=version + 1: _figures(stand) == (swaps, swaps, 0))
            wait_for(lambda: anonymous_files() <= before)
        assert _figures(stand) == (VERSIONS + 1, VERSIONS + 1, 0)
        assert exchange(client, [stand.decision(0, 0)]).actions[0].policy_version == VERSIONS
        assert stand.server.metrics()["weights_refused"] == 0
        assert not stand.learner.io.drain_events()
