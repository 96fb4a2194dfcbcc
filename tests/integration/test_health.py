"""A server that stands still is noticed from outside its loop, and one that is asked to stop owes nobody an answer."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from common.client import Replies, pack_step
from common.codec import Codec
from common.decisions import start_flags
from common.errors import ERR_NOT_READY, ConfigError
from common.messages import TO_SUPERVISOR, Report
from common.transport import Poller, PullSocket, RouterSocket
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


def test_a_server_that_stops_answers_everything_that_has_arrived() -> None:
    with Stand(max_batch=4) as stand, RawClient(stand.run_dir.endpoint("data"), stand.spec) as late:
        late.hello("late")
        client = stand.client("a", training=False)
        exchange(client, [stand.decision(env, 0, flags=FREE) for env in range(20)])
        with stalled(stand) as stall:
            client.submit([stand.decision(0, 1)])
            stall.wait_until_inside()
            client.submit([stand.decision(env, 1) for env in range(1, 20)])
            client.submit([stand.decision(99, 0, flags=FREE)])
            stand.stop_flag.set()
            stall.go.set()
            replies, deadline = Replies([], []), time.monotonic() + 10
            while client.waiting:
                more = client.poll()
                replies.actions += more.actions
                replies.failures += more.failures
                assert time.monotonic() < deadline
                client.poller.wait(0.01)
        assert sorted(action.env for action in replies.actions) == list(range(20))
        assert [(f.env, f.code) for f in replies.failures] == [(99, ERR_NOT_READY)]
        stand._thread.join(5)
        assert not stand._thread.is_alive()


def test_what_comes_while_the_rest_is_answered_is_refused() -> None:
    with Stand(max_batch=1) as stand, RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        raw.hello()
        client = stand.client("a")
        exchange(client, [stand.decision(env, 0) for env in range(2)])
        with stalled(stand) as stall:
            client.submit([stand.decision(env, 1) for env in range(2)])
            stall.wait_until_inside()
            stand.stop_flag.set()
            receive = stand.server._receive

            def receive_late(now: float) -> None:
                receive(now)
                if stand.server._intake.closed is False and stand.server._sessions.accepting is False:
                    raw.send(*pack_step(1, [stand.decision(0, 0, flags=FREE)], stand.spec))
                    time.sleep(0.05)

            stand.server._receive = receive_late
            stall.go.set()
            answer, _ = raw.receive()
        assert (answer.code, answer.id) == (ERR_NOT_READY, 1)


@pytest.mark.parametrize("endpoint", ["tcp://127.0.0.1:{port}", "ipc://{folder}/data.ipc"])
def test_a_second_server_on_the_endpoint_refuses_and_the_first_serves_on(endpoint: str, tmp_path) -> None:
    with RouterSocket("tcp://127.0.0.1:*") as probe:
        port = probe.raw.getsockopt_string(32).rpartition(":")[2]  # LAST_ENDPOINT
    endpoint = endpoint.format(port=port, folder=tmp_path)
    with Stand(endpoint=endpoint) as stand, RawClient(endpoint, stand.spec) as raw:
        raw.hello()
        with pytest.raises(ConfigError, match=r"in use by another process|cannot be bound"):
            RouterSocket(endpoint)
        assert raw.alive()


def test_sigterm_ends_a_server_with_exit_code_0_and_a_second_one_at_once(tmp_path) -> None:
    code = (
        "import time\nfrom common.lifecycle import StopFlag\nstop = StopFlag().install()\nprint('up', flush=True)\n"
        "while not stop:\n    time.sleep(0.01)\nprint('draining', flush=True)\ntime.sleep({drain})\n"
    )
    for drain, signals, wanted in ((0.0, 1, 0), (30.0, 2, 130)):
        process = subprocess.Popen([sys.executable, "-c", code.format(drain=drain)], stdout=subprocess.PIPE, text=True)
        with process:
            assert process.stdout.readline() == "up\n"
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline() == "draining\n"
            if signals == 2:
                process.send_signal(signal.SIGTERM)
            assert process.wait(5) == wanted
