"""Faults 15 to 23: sessions that are pulled at from several sides."""

from __future__ import annotations

import contextlib
import time

import numpy as np
import pytest
import zmq

from common.client import InferenceClient
from common.errors import (
    ERR_CAPACITY,
    ERR_DENIED,
    ERR_NO_SESSION,
    ERR_ORDER,
    ERR_VALUE,
)
from common.messages import ABORTED, PROTOCOL, Actions, Error, Evaluate, Hello
from common.step_book import pack_step
from inference_server import housekeeping
from tests.support.faults import FREE, count, dial, free_port, unharmed, wait_for
from tests.support.raw_client import RawClient
from tests.support.stall import stalled
from tests.support.stand import SPEC, Stand, exchange


@pytest.mark.counts("rows_errored.ERR_NO_SESSION", by=1)
def test_fault_15_a_step_without_start_is_err_no_session(stand, client) -> None:
    started = stand.server.metrics()["sessions_started"]
    assert exchange(client, [stand.decision(0, 3, flags=0)]).failures[0].code == ERR_NO_SESSION
    assert stand.server.metrics()["sessions_started"] == started


@pytest.mark.counts("sessions_ended.restarted", by=1)
def test_fault_16_start_on_a_live_seat_ends_the_old_session_and_begins_from_zero(client, stand) -> None:
    before = stand.server.metrics()["sessions_ended"].get("restarted", 0)
    first = exchange(client, [stand.decision(0, 0, flags=4 | FREE)]).actions[0]
    exchange(client, [stand.decision(0, 1)])
    again = exchange(client, [stand.decision(0, 0, episode=1, flags=4 | FREE)]).actions[0]
    assert (again.action, again.value) == (first.action, pytest.approx(first.value, abs=1e-6))
    assert stand.server.metrics()["sessions_ended"]["restarted"] == before + 1
    assert exchange(client, [stand.decision(0, 2)]).failures[0].code == ERR_NO_SESSION


@pytest.mark.counts("rows_cached", by=2)
def test_fault_17_a_resend_gets_the_identical_reply_and_moves_nothing(stand, raw) -> None:
    answers = []
    for number in range(3):
        raw.send(*pack_step(number, [stand.decision(0, 0, flags=FREE)], stand.spec))
        message, tensors = raw.receive()
        assert isinstance(message, Actions)
        answers.append({name: tensor.tobytes() for name, tensor in tensors.items()})
    assert answers[0] == answers[1] == answers[2]
    assert isinstance(raw.ask(*pack_step(9, [stand.decision(0, 1)], stand.spec)), Actions)


@pytest.mark.parametrize(("step", "attempt"), [(3, 0), (0, 0), (1, 2), (2, 1), (-1, 0), (2**62, 0)])
@pytest.mark.counts("rows_errored.ERR_ORDER", by=1)
def test_fault_18_a_gap_or_a_step_back_is_err_order(stand, raw, step, attempt) -> None:
    for number in range(2):
        raw.ask(*pack_step(number, [stand.decision(0, number, flags=FREE if number == 0 else 0)], stand.spec))
    wrong = stand.decision(0, 1)
    wrong.step, wrong.attempt = step, attempt
    answer = raw.ask(*pack_step(5, [wrong], stand.spec))
    assert (answer.code, answer.rows) == (ERR_ORDER, (0,))
    assert isinstance(raw.ask(*pack_step(6, [stand.decision(0, 2)], stand.spec)), Actions)


@pytest.mark.counts("rows_errored.ERR_ORDER", by=2)
def test_fault_19_two_steps_of_one_session_are_never_in_one_batch(stand, raw) -> None:
    raw.ask(*pack_step(0, [stand.decision(0, 0, flags=FREE)], stand.spec))
    rows = [stand.decision(0, 1), stand.decision(0, 2), stand.decision(0, 1)]
    raw.send(*pack_step(1, rows, stand.spec))
    answers = [raw.receive() for _ in range(3)]
    refused = [(message.code, message.rows) for message, _ in answers if isinstance(message, Error)]
    assert sorted(refused) == [(ERR_ORDER, (1,)), (ERR_ORDER, (2,))]
    acted = next(tensors for message, tensors in answers if isinstance(message, Actions))
    assert len(acted["row"]) == 1
    assert isinstance(raw.ask(*pack_step(2, [stand.decision(0, 2)], stand.spec)), Actions)


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


def test_fault_20_a_stolen_routing_id_neither_steps_nor_hears_what_is_its_owners() -> None:
    """Who speaks ZeroMQ by hand may name itself as it likes, also like a connection that is open (ROUTER_HANDOVER)."""
    with (
        Stand(endpoint=f"tcp://127.0.0.1:{free_port()}") as stand,
        unharmed(stand, "connections.opened"),
        RawClient(stand.config.server.endpoint, stand.spec) as owner,
        dial(int(stand.config.server.endpoint.rpartition(":")[2])) as thief,
    ):
        owner.hello("owner")
        owner.ask(*pack_step(1, [stand.decision(0, 0, flags=FREE)], stand.spec))
        (peer,) = (client.peer for client in stand.server._housekeeping._clients if client.name == "owner")
        thief.settimeout(0.3)
        thief.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(52, b"\0"))
        names = b"\x0bSocket-Type\0\0\0\x06DEALER\x08Identity" + len(peer).to_bytes(4, "big") + peer
        thief.sendall(_zmtp(b"\x05READY" + names, command=True))
        wait_for(lambda: count(stand, "connections.opened") == 3)  # neighbour, owner, thief
        thief.sendall(_zmtp(b"\x81\xa4type\xa4PING"))
        heard = b""
        with contextlib.suppress(TimeoutError):
            while more := thief.recv(4096):
                heard += more
        assert b"READY" in heard
        assert b"PONG" not in heard
        assert isinstance(owner.ask(*pack_step(2, [stand.decision(0, 1)], stand.spec)), Actions)


def test_fault_21_an_idle_session_is_freed_once_and_its_late_step_refused(monkeypatch) -> None:
    monkeypatch.setattr(housekeeping, "EVERY_SEC", 0.05)
    with Stand(idle_timeout_sec=0.6) as stand, unharmed(stand, "sessions_ended.idle", by=3) as neighbour:
        client = stand.client("a")
        exchange(client, [stand.decision(env, 0) for env in range(3)])
        wait_for(lambda: neighbour.play(1) or (client.poll() and count(stand, "sessions_ended.idle") == 3))
        replies = exchange(client, [stand.decision(0, 1), *stand.ends(1, 1)])
        assert [(f.env, f.code) for f in replies.failures] == [(0, ERR_NO_SESSION)]
        assert "idle_timeout_sec" in replies.failures[0].message
        assert [(a.env, a.action) for a in replies.actions] == [(1, -1)]


def test_fault_22_when_every_session_is_taken_the_answer_comes_at_once_and_an_end_makes_room() -> None:
    with Stand(max_sessions=9) as stand, unharmed(stand, "rows_errored.ERR_CAPACITY", by=1):
        client = stand.client("a")
        begin = time.monotonic()
        replies = exchange(client, [stand.decision(env, 0) for env in range(7)])
        assert time.monotonic() - begin < 2.0
        assert [(f.env, f.code) for f in replies.failures] == [(6, ERR_CAPACITY)]
        exchange(client, stand.ends(1, 0))
        assert len(exchange(client, [stand.decision(6, 0)]).actions) == 1
        exchange(client, stand.ends(1, *range(1, 7)))


@pytest.mark.counts("batches")
def test_fault_23_what_else_is_in_the_batch_changes_no_numbers(stand) -> None:
    answers = []
    for others in (0, 5, 23):
        client = InferenceClient(stand.run_dir.endpoint("data"), name="same", spec=SPEC)
        client.connect()
        for step in range(6):
            start = FREE if step == 0 else 0
            with stalled(stand) as stall:  # all in one batch
                client.submit([stand.decision(1000, 0, episode=step, flags=FREE)])
                stall.wait_until_inside()
                client.submit([stand.decision(env, step, flags=start) for env in (7, *range(100, 100 + others))])
                stall.go.set()
            got = exchange(client, []).actions
            answers.append(next((a.step, a.action, a.log_prob, a.value) for a in got if a.env == 7))
        client.close()
    alone, few, many = (np.array(answers[i : i + 6]) for i in (0, 6, 12))
    assert np.allclose(alone, few, atol=1e-4)
    assert np.allclose(alone, many, atol=1e-4)


@pytest.mark.counts
def test_fault_20_an_aborted_stranger_leaves_the_owners_session_alone(stand, client, raw) -> None:
    exchange(client, [stand.decision(3, 0, flags=FREE)])
    end = stand.decision(3, 1, kind=ABORTED, observation=None, mask=None)
    raw.send(*pack_step(1, [end], stand.spec))
    message, tensors = raw.receive()
    assert isinstance(message, Actions)
    assert tensors["action"].tolist() == [-1]  # there is nothing of its own to end
    assert exchange(client, [stand.decision(3, 1)]).actions[0].step == 1
