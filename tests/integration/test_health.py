"""A server that stands still is noticed from outside its loop, and one that is asked to stop owes nobody an answer."""

from __future__ import annotations

import time
import urllib.request

import pytest

from simul.common.client.client import InferenceClient
from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import TO_SUPERVISOR, Ping, Pong, Report
from simul.common.transport import Poller, PullSocket
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from tests.support.raw_client import RawClient
from tests.support.stall import stalled
from tests.support.stand import Stand, gather
from tests.support.waiting import PATIENCE_SEC, wait_for

TRIES = 20  # a busy machine may look late now and then; a server that is not watched never looks in time


class _Reports:
    """Stands where the supervisor listens."""

    def __init__(self, socket: PullSocket) -> None:
        self._socket = socket
        self._codec: Codec[Report] = Codec(TO_SUPERVISOR)
        self._poller = Poller([socket])

    def wait_for(self, condition) -> Report:
        deadline = time.monotonic() + PATIENCE_SEC
        while time.monotonic() < deadline:
            while (frames := self._socket.receive()) is not None:
                report, _ = self._codec.decode(frames)
                if condition(report):
                    return report
            self._poller.wait(0.02)
        raise AssertionError("no such report came")


@pytest.mark.timeout(600)
def test_a_forward_that_does_not_return_is_reported_within_a_second_and_so_is_its_return() -> None:
    port = free_port()
    stand = Stand(prometheus_port=port)
    with PullSocket(stand.run_dir.endpoint("status")) as socket, stand:
        reports = _Reports(socket)
        ready = reports.wait_for(lambda report: report.state == "ready")
        assert ready.metrics["health"] == "ok"
        client = stand.client("a")
        tries = (_seen_after(stand, client, step, reports, port) for step in range(TRIES))
        assert any(reported < 1.0 and scraped < 1.1 for reported, scraped in tries)
        reports.wait_for(lambda report: report.state == "ready" and report.metrics["health"] == "ok")
        wait_for(lambda: {"simul_ready 1.0", "simul_healthy 1.0"} <= _scrape(port))


def _seen_after(stand: Stand, client: InferenceClient, step: int, reports: _Reports, port: int) -> tuple[float, float]:
    """Seconds from a forward that does not return until it is reported, and until it can be scraped."""
    with stalled(stand) as stall:
        client.submit([stand.decision(0, step)])
        stall.wait_until_inside()
        begin = time.monotonic()
        stuck = reports.wait_for(lambda report: report.state == "stuck" and report.metrics["decisions"] == step)
        reported = time.monotonic() - begin
        assert stuck.metrics["health"].startswith("stuck for ")
        assert stuck.metrics["ready"] is False
        wait_for(lambda: {"simul_ready 0.0", "simul_healthy 0.0"} <= _scrape(port))
        scraped = time.monotonic() - begin
        stall.go.set()
    assert len(gather(client).actions) == 1
    reports.wait_for(lambda report: report.state == "ready" and report.metrics["decisions"] == step + 1)
    return reported, scraped


def test_a_server_that_shuts_down_says_that_it_is_not_ready() -> None:
    with Stand() as stand, RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        raw.hello()
        assert raw.ask(Ping(id=1)) == Pong(id=1, policies=("learner",), ready=True)
        with stalled(stand) as stall:
            stand.client("a").submit([stand.decision(0, 0)])
            stall.wait_until_inside()
            stand.stop_flag.set()
            raw.send(Ping(id=2))
            stall.wait_until_arrived(1)
            stall.go.set()
            assert raw.receive()[0] == Pong(id=2, policies=("learner",), ready=False)


def _scrape(port: int) -> set[str]:
    """Lines of /metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_SEC) as page:
        return set(page.read().decode().splitlines())
