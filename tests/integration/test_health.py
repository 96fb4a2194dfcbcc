"""A server that stands still is noticed from outside its loop, and one that is asked to stop owes nobody an answer."""

from __future__ import annotations

import time
import urllib.request

from common.codec import Codec
from common.decisions import start_flags
from common.messages import TO_SUPERVISOR, Ping, Pong, Report
from common.transport import Poller, PullSocket
from tests.support.faults import free_port, wait_for
from tests.support.raw_client import RawClient
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
    port = free_port()
    stand = Stand(prometheus_port=port)
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
            assert stuck.metrics["ready"] is False
            figures = _scrape(port)
            assert "simul_ready 0.0" in figures
            assert "simul_healthy 0.0" in figures
            assert time.monotonic() - begin < 1.1
            stall.go.set()
        reports.wait_for(lambda report: report.state == "ready" and report.metrics["health"] == "ok", 5)
        assert len(exchange(client, []).actions) == 1
        wait_for(lambda: {"simul_ready 1.0", "simul_healthy 1.0"} <= _scrape(port))


def test_a_server_that_shuts_down_says_that_it_is_not_ready() -> None:
    with Stand() as stand, RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        raw.hello()
        assert raw.ask(Ping(id=1)) == Pong(id=1, policies=("learner",), ready=True)
        with stalled(stand) as stall:
            stand.client("a").submit([stand.decision(0, 0)])
            stall.wait_until_inside()
            stand.stop_flag.set()
            raw.send(Ping(id=2))
            stall.go.set()
            assert raw.receive()[0] == Pong(id=2, policies=("learner",), ready=False)


def _scrape(port: int) -> set[str]:
    """Lines of /metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
        return set(page.read().decode().splitlines())
