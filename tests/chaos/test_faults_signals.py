"""Fault 30 in real processes: SIGTERM with a row in the forward and hundreds behind it, and a second one."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest

from simul.common.client.client import InferenceClient, Replies
from tests.support.server_process import ServerProcess
from tests.support.stand import Stand
from tests.support.waiting import PATIENCE_SEC, wait_for

pytestmark = pytest.mark.timeout(600)  # of which two servers need most to start on a loaded machine
LOAD = {"max_batch": 1, "max_sessions": 16_384}


@pytest.fixture(scope="module")
def servers() -> Iterator[list[ServerProcess]]:
    """Two that start side by side: each ends with its test."""
    with ServerProcess(**LOAD) as one, ServerProcess(**LOAD) as two:
        yield [one, two]


def _read(client: InferenceClient, replies: Replies) -> None:
    more = client.poll()
    replies.actions += more.actions
    replies.failures += more.failures
    client.poller.wait(0.01)


def _under_load(stand: Stand, rows: int) -> list[tuple[InferenceClient, Replies]]:
    """Two clients with `rows` rows each, all of which have arrived: the first are answered."""
    clients = [(stand.client(name), Replies([], [])) for name in ("a", "b")]
    for client, _ in clients:
        client.submit([stand.decision(env, 0) for env in range(rows)])
    for client, replies in clients:
        while not replies.actions:
            _read(client, replies)
    return clients


def test_fault_30_sigterm_under_load_answers_every_row_and_exits_with_0(servers) -> None:
    stand = servers.pop()
    clients = _under_load(stand, 300)
    stand.process.send_signal(signal.SIGTERM)
    for client, replies in clients:
        deadline = time.monotonic() + PATIENCE_SEC
        while client.waiting:
            _read(client, replies)
            assert time.monotonic() < deadline
        assert sorted(action.env for action in replies.actions) == list(range(300))
        assert not replies.failures
    assert stand.process.wait(PATIENCE_SEC) == 0


def test_fault_30_a_second_sigterm_ends_the_server_at_once(servers) -> None:
    stand = servers.pop()
    clients = _under_load(stand, 4000)  # the second signal may be late
    stand.process.send_signal(signal.SIGTERM)
    wait_for(lambda: stand.says("draining"))
    stand.process.send_signal(signal.SIGTERM)  # while it answers what waits
    assert stand.process.wait(PATIENCE_SEC) == 130
    for client, replies in clients:
        _read(client, replies)
    assert any(client.waiting for client, _ in clients)
