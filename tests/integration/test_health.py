"""A server that stands still is noticed from outside its loop, and one that is asked to stop owes nobody an answer."""

from __future__ import annotations

import time

from common.codec import Codec
from common.decisions import start_flags
from common.messages import TO_SUPERVISOR, Report
from common.transport import Poller, PullSocket
from tests.support.stall import stalled
from tests.support.stand import Stand, exchange

FREE = start_flags(record=False, greedy=False)


class _Reports:
    """Stands where the supervisor listens."""

    def __init__(self, socket: PullSocket) -> None:
        self._socket = socket
        self._codec: Codec[Report] = Codec(TO_SUPERVISOR)
        self._poller = Poller([socket])

    def wait_for(self, condition, timeout_sec: float) -> Report:
        deadline = time.monotonic() + timeout_sec
        while time.monotonic() < deadline:
            while (frames := self._socket.receive()) is not None:
                report, _ = self._codec.decode(frames)
                if condition(report):
                    return report
            self._poller.wait(0.02)
        raise AssertionError("no such report came")


def test_a_forward_that_does_not_return_is_reported_within_a_second_and_so_is_its_return() -> None:
    stand = Stand()
    with PullSocket(stand.run_dir.endpoint("status")) as socket, stand:
        reports = _Reports(socket)
        ready = reports.wait_for(lambda report: report.state == "ready", 5)
        assert ready.metrics["health"] == "ok"
        client = stand.client("a")
        with stalled(stand) as stall:
            client.submit([stand.decision(0, 0)])
            stall.wait_until_inside()
            begin = time.monotonic()
            stuck = reports.wait_for(lambda report: report.state == "stuck", 5)
            assert time.monotonic() - begin < 1.0
            assert stuck.metrics["health"].startswith("stuck for 0.")
            assert stuck.metrics["decisions"] == 0  # the other figures are those of the last report
            assert "stuck" in stuck.event
            stall.go.set()
        reports.wait_for(lambda report: report.state == "ready" and report.metrics["health"] == "ok", 5)
        assert len(exchange(client, []).actions) == 1
