"""Fault 20: what is somebody else's."""

from __future__ import annotations

import contextlib
import time

import msgspec
import numpy as np
import pytest
import zmq

from simul.common.client.steps import pack_step
from simul.common.errors import ERR_DENIED, ERR_NO_SESSION, ERR_SPEC, ERR_STALE_RUN, ERR_VALUE, ERR_VERSION
from simul.common.protocol.messages import ABORTED, PROTOCOL, Actions, Close, Evaluate, Hello
from simul.common.transport import sockets
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from tests.support.faults import FREE, count, dial, unharmed
from tests.support.raw_client import RawClient
from tests.support.stand import Stand, exchange
from tests.support.waiting import PATIENCE_SEC, wait_for


@pytest.mark.counts("rows_errored.ERR_NO_SESSION", by=2)
def test_fault_20_another_clients_session_is_neither_stepped_nor_read_nor_recorded(stand, client, raw) -> None:
    exchange(client, [stand.decision(6, 0, flags=FREE)])
    refused = raw.ask(*pack_step(1, [stand.decision(6, 1)], stand.spec))
    assert refused.code == ERR_NO_SESSION
    row = {"observation": np.zeros((1, 12), np.float32), "mask": np.full((1, 1), 31, np.uint8)}
    refused = raw.ask(Evaluate(id=2), row | {"session": np.array([[6, 0, 0]], np.int64)})
    assert refused.code == ERR_NO_SESSION
    refused = raw.ask(*pack_step(3, [stand.decision(6, 0)], stand.spec))  # RECORD without the training token
    assert refused.code == ERR_DENIED
    assert exchange(client, [stand.decision(6, 1)]).actions[0].step == 1


@pytest.mark.counts("malformed", by=2)
def test_fault_20_another_runs_training_token_is_refused_at_once_also_of_who_comes_back(stand) -> None:
    hello = Hello(PROTOCOL, "impostor", time.time_ns(), stand.spec.fingerprint(), training_token="another run's")
    with RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        refused = raw.ask(hello)
        assert (refused.code, "not this run's" in refused.message) == (ERR_DENIED, True)
        token = raw.hello("impostor", run_id=hello.run_id).token  # without one it is a stranger like any other
        assert raw.ask(msgspec.structs.replace(hello, token=token)).code == ERR_DENIED
        assert raw.alive()
        raw.send(Close())


@pytest.mark.counts("messages_refused.ERR_STALE_RUN", by=1)
def test_fault_20_an_equal_run_id_without_the_token_evicts_nobody(stand) -> None:
    incumbent = stand.client("incumbent", training=False, run_id=7)
    exchange(incumbent, [stand.decision(0, 0, flags=FREE)])
    with RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        hello = Hello(PROTOCOL, "incumbent", 7, stand.spec.fingerprint())
        refused = raw.ask(hello)
        assert (refused.code, "expected its token" in refused.message) == (ERR_STALE_RUN, True)
        assert exchange(incumbent, [stand.decision(0, 1)]).actions[0].step == 1
        token = incumbent._connection.hello.token
        assert raw.ask(msgspec.structs.replace(hello, token=token)).resumed  # who holds it is the same client
        raw.send(Close())


def test_fault_20_whoever_never_read_its_welcome_connects_with_the_same_run_id(stand) -> None:
    hello = Hello(PROTOCOL, "unheard", 7, stand.spec.fingerprint())
    with unharmed(stand, "messages_refused.ERR_STALE_RUN", by=2):
        with RawClient(stand.run_dir.endpoint("data"), stand.spec) as lost:
            lost.hello("unheard", run_id=7)  # its token is lost
            client = stand.client("unheard", training=False, run_id=7)
            exchange(client, [stand.decision(0, 0, flags=FREE)])
            assert lost.ask(hello).code == ERR_STALE_RUN  # a client that plays is replaced no more
        with RawClient(stand.run_dir.endpoint("data"), stand.spec) as first:
            token = first.hello("resumed", run_id=7).token
            assert first.hello("resumed", run_id=7, token=token).resumed
            with RawClient(stand.run_dir.endpoint("data"), stand.spec) as second:
                assert second.ask(msgspec.structs.replace(hello, client="resumed")).code == ERR_STALE_RUN
            first.send(Close())
        client.close()


@pytest.mark.counts("malformed", by=2)
@pytest.mark.parametrize("field", ["protocol", "spec_fingerprint"])
def test_fault_20_a_refusal_repeats_little_of_what_was_sent(stand, field) -> None:
    with RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        for text in ("x" * 40_000, "\x1b[2J" * 4000):
            hello = Hello(PROTOCOL, "long", 1, stand.spec.fingerprint())
            refused = raw.ask(msgspec.structs.replace(hello, **{field: text}))
            assert refused.code == (ERR_VERSION if field == "protocol" else ERR_SPEC)
            assert len(refused.message) < 400
            assert refused.message.isprintable()


@pytest.mark.counts("malformed", by=1)
def test_fault_20_a_routing_id_of_ones_own_choice_is_refused(stand) -> None:
    with RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        raw.socket.raw.disconnect(raw.socket.endpoint)
        raw.socket.raw.setsockopt(zmq.IDENTITY, b"the-same-name")
        raw.socket.raw.connect(raw.socket.endpoint)
        refused = raw.ask(Hello(PROTOCOL, "raw", time.time_ns(), stand.spec.fingerprint()))
        assert refused.code == ERR_VALUE
        assert "routing id" in refused.message


def _zmtp(body: bytes, command: bool = False) -> bytes:
    return bytes([4 * command, len(body)]) + body


def test_fault_20_a_stolen_routing_id_neither_steps_nor_hears_what_is_its_owners(monkeypatch) -> None:
    """Who speaks ZeroMQ by hand may name itself as it likes, also like a connection that is open (ROUTER_HANDOVER)."""
    monkeypatch.setattr(sockets, "HANDSHAKE_MS", int(2 * PATIENCE_SEC * 1000))  # the thief says nothing at first
    with (
        Stand(endpoint=f"tcp://127.0.0.1:{free_port()}") as stand,
        unharmed(stand, "connections.opened"),
        RawClient(stand.config.server.endpoint, stand.spec) as owner,
        dial(int(stand.config.server.endpoint.rpartition(":")[2])) as thief,
    ):
        owner.hello("owner")
        owner.ask(*pack_step(1, [stand.decision(0, 0, flags=FREE)], stand.spec))
        (peer,) = (client.peer for client in stand.server._client_socket._clients if client.name == "owner")
        thief.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(52, b"\0"))
        names = b"\x0bSocket-Type\0\0\0\x06DEALER\x08Identity" + len(peer).to_bytes(4, "big") + peer
        thief.sendall(_zmtp(b"\x05READY" + names, command=True))
        wait_for(lambda: count(stand, "connections.opened") == 3)  # neighbour, owner, thief
        thief.sendall(_zmtp(b"\x81\xa4type\xa4PING"))
        heard = b""
        thief.settimeout(PATIENCE_SEC)
        while b"READY" not in heard:
            more = thief.recv(4096)
            assert more, "the server hung up"
            heard += more
        thief.settimeout(0.3)
        with contextlib.suppress(TimeoutError):
            while more := thief.recv(4096):
                heard += more
        assert b"PONG" not in heard
        assert isinstance(owner.ask(*pack_step(2, [stand.decision(0, 1)], stand.spec)), Actions)


@pytest.mark.counts
def test_fault_20_an_aborted_stranger_leaves_the_owners_session_alone(stand, client, raw) -> None:
    exchange(client, [stand.decision(3, 0, flags=FREE)])
    end = stand.decision(3, 1, kind=ABORTED, observation=None, mask=None)
    raw.send(*pack_step(1, [end], stand.spec))
    message, tensors = raw.receive()
    assert isinstance(message, Actions)
    assert tensors["action"].tolist() == [-1]  # there is nothing of its own to end
    assert exchange(client, [stand.decision(3, 1)]).actions[0].step == 1
