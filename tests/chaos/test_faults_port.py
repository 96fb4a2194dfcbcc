"""Faults 3 to 5: what comes to a TCP port without becoming a client."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator

import psutil
import pytest

from common.codec import encode
from common.messages import PROTOCOL, Hello
from common.transport import base, sockets
from tests.support.faults import count, dial, free_port, wait_for
from tests.support.raw_client import RawClient
from tests.support.stand import SPEC, Stand


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    monkeypatch.setattr(sockets, "HANDSHAKE_MS", 300)
    monkeypatch.setattr(base, "MAX_FRAME_BYTES", 1 << 20)
    with Stand(endpoint=f"tcp://127.0.0.1:{free_port()}") as one:
        yield one


def _port(stand: Stand) -> int:
    return int(stand.config.server.endpoint.rpartition(":")[2])


@pytest.mark.counts("connections.closed")
def test_fault_03_an_oversized_frame_costs_its_sender_the_connection_and_nobody_else_anything(stand) -> None:
    with RawClient(stand.config.server.endpoint, SPEC) as raw:
        token, closed = raw.hello("big").token, count(stand, "connections.closed")
        raw.send_frames([bytes(2 << 20)])
        wait_for(lambda: count(stand, "connections.closed") == closed + 1)
        deadline = time.monotonic() + 10  # ZeroMQ connects again by itself, as somebody unknown
        while time.monotonic() < deadline:
            raw.socket.send(encode(Hello(protocol=PROTOCOL, client="big", run_id=1,
                                         spec_fingerprint=SPEC.fingerprint(), token=token)))  # fmt: skip
            if raw._poller.wait(0.2):
                break
        welcome, _ = raw.receive()
        assert welcome.resumed


FOREIGN = {
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"A" * 200,
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500,
    "zmtp1": b"\x01\x00\x01\x00\x04\x00\x00\x05hello",
    "random": random.Random(4).randbytes(1 << 20),
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.counts("connections.closed")
def test_fault_04_other_protocols_on_the_port_do_no_harm(stand, name) -> None:
    """What ZeroMQ takes for its first version reaches the server as messages, from whom it likes to be."""
    malformed, closed = count(stand, "malformed"), count(stand, "connections.closed")
    with dial(_port(stand)) as line:
        line.settimeout(0.5)
        with contextlib.suppress(TimeoutError, ConnectionError):
            line.sendall(FOREIGN[name])
            while line.recv(65536):
                pass
    wait_for(lambda: count(stand, "connections.closed") > closed)
    if name in ("zmtp1", "random"):
        wait_for(lambda: count(stand, "malformed") > malformed)


@pytest.mark.parametrize("silent", [100, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.counts("connections.failed")
def test_fault_05_who_connects_and_says_nothing_is_let_go(stand, silent) -> None:
    me = psutil.Process()
    before = me.num_fds()
    with contextlib.ExitStack() as open_lines:
        lines = [open_lines.enter_context(dial(_port(stand))) for _ in range(silent)]
        for line in lines:
            line.sendall(b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f")  # the first bytes of a greeting
        wait_for(lambda: count(stand, "connections.failed") == silent)
        wait_for(lambda: me.num_fds() <= before + silent + 5)  # the server's ends are closed, ours are left
