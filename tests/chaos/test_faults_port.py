"""Faults 3 to 5: what comes to a TCP port without becoming a client."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator

import psutil
import pytest

from simul.common.protocol.codec import encode
from simul.common.protocol.messages import PROTOCOL, Hello
from simul.common.transport import DealerSocket, RouterSocket, client_keys, new_keys, server_keys, sockets
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from simul.inference_server.proxy.framing import Limits
from tests.support.faults import count, dial
from tests.support.raw_client import RawClient
from tests.support.sockets import receive
from tests.support.stand import SPEC, Stand
from tests.support.waiting import PATIENCE_SEC, wait_for


@pytest.fixture
def handshake_ms() -> int:
    return 300


@pytest.fixture(params=[None, Limits(message_bytes=1 << 20)], ids=["direct", "proxy"])
def stand(request: pytest.FixtureRequest, handshake_ms: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    monkeypatch.setattr(sockets, "HANDSHAKE_MS", handshake_ms)
    monkeypatch.setattr(sockets, "MAX_FRAME_BYTES", 1 << 20)
    with Stand(endpoint=f"tcp://127.0.0.1:{free_port()}", proxy=request.param) as one:
        yield one


def _port(stand: Stand) -> int:
    return int(stand.config.server.endpoint.rpartition(":")[2])


@pytest.mark.parametrize("handshake_ms", [int(2 * PATIENCE_SEC * 1000)])
@pytest.mark.counts("connections.closed")
def test_fault_03_an_oversized_frame_costs_its_sender_the_connection_and_nobody_else_anything(stand) -> None:
    with RawClient(stand.config.server.endpoint, SPEC) as raw:
        token, closed = raw.hello("big").token, count(stand, "connections.closed")
        raw.send_frames([bytes(2 << 20)])
        wait_for(lambda: count(stand, "connections.closed") == closed + 1)
        deadline = time.monotonic() + PATIENCE_SEC  # ZeroMQ connects again by itself, as somebody unknown
        while time.monotonic() < deadline:
            raw.socket.send(encode(Hello(protocol=PROTOCOL, client="big", run_id=1,
                                         spec_fingerprint=SPEC.fingerprint(), token=token)))  # fmt: skip
            if raw._poller.wait(0.2):
                break
        welcome, _ = raw.receive()
        assert welcome.resumed


FOREIGN = {
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "http, long": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"A" * 200,
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500,
    "one byte": b"G",
    "zeros": bytes(5),
    "zmtp 1": b"\x01\x00\x01\x00\x04\x00\x00\x05hello",
    "zmtp 1 with a name": b"\x02\x00a\x06\x00hello",
    "zmtp 2": b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01\x05\x00\x00",
    "random": random.Random(4).randbytes(1 << 20),
}
SIGNATURE = b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f"
HALF_HANDSHAKES = [b"", SIGNATURE, *((SIGNATURE + b"\x03\x00" + name).ljust(64, b"\0") for name in (b"NULL", b"CURVE"))]


def _let_go(port: int, said: bytes) -> bytes:
    """What a caller hears who says this and holds the line; fails where the server does not close it."""
    heard = b""
    with dial(port) as line, contextlib.suppress(ConnectionError):
        line.settimeout(PATIENCE_SEC)
        line.sendall(said)
        while some := line.recv(65536):
            heard += some
    return heard


@pytest.mark.parametrize("handshake_ms", [int(2 * PATIENCE_SEC * 1000)])
@pytest.mark.counts("connections.closed")
def test_fault_04_who_speaks_another_protocol_is_let_go_at_once_and_hears_no_message(stand) -> None:
    """ZeroMQ alone would take all of it for its first versions, for which it knows no timeout."""
    malformed = count(stand, "malformed")
    for said in FOREIGN.values():
        assert len(_let_go(_port(stand), said)) <= 64  # no more than a greeting
    assert count(stand, "malformed") == malformed


def test_extra_where_there_are_keys_nobody_without_one_holds_a_descriptor(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sockets, "HANDSHAKE_MS", 300)
    new_keys(tmp_path / "keys")
    endpoint, me = f"tcp://127.0.0.1:{free_port()}", psutil.Process()
    with RouterSocket(endpoint, keys=server_keys(tmp_path / "keys")) as router, contextlib.ExitStack() as open_lines:
        before = me.num_fds()
        for said in 3 * [*FOREIGN.values(), *HALF_HANDSHAKES]:
            line = open_lines.enter_context(dial(int(endpoint.rpartition(":")[2])))
            with contextlib.suppress(ConnectionError):
                line.sendall(said)
        ours = 3 * len([*FOREIGN, *HALF_HANDSHAKES])
        wait_for(lambda: me.num_fds() <= before + ours)
        assert router.receive() is None
        with DealerSocket(endpoint, keys=client_keys(tmp_path / "keys")) as dealer:
            dealer.send([b"hello"])
            assert receive(router)[1] == [b"hello"]


@pytest.mark.parametrize("silent", [100, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.counts("connections.failed")
def test_fault_05_who_connects_and_says_nothing_is_let_go(stand, silent) -> None:
    wait_for(lambda: count(stand, "connections.opened"))  # the neighbour's, and what failed before it
    me, failed = psutil.Process(), count(stand, "connections.failed")
    before = me.num_fds()
    with contextlib.ExitStack() as open_lines:
        lines = [open_lines.enter_context(dial(_port(stand))) for _ in range(silent)]
        for line in lines:
            line.sendall(SIGNATURE)  # the first bytes of a greeting
        wait_for(lambda: count(stand, "connections.failed") == failed + silent)
        wait_for(lambda: me.num_fds() <= before + silent + 5)  # the server's ends are closed, ours are left
