"""Faults 29 to 31: killed servers, servers that stop, and a second server."""

from __future__ import annotations

import threading

import pytest

from simul.common.client.client import InferenceClient
from simul.common.client.steps import pack_step
from simul.common.errors import ERR_NOT_READY, ConfigError
from simul.common.transport import Poller, RouterSocket
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from tests.support.faults import FREE, count, dial, unharmed
from tests.support.raw_client import RawClient
from tests.support.stall import stalled
from tests.support.stand import Stand, exchange, gather
from tests.support.waiting import PATIENCE_SEC, wait_for


def test_fault_29_after_the_server_died_clients_learn_that_their_sessions_are_gone() -> None:
    """SIGKILL of a real server under its supervisor is in test_kills.py; a stuck loop in test_health.py."""
    port = free_port()
    endpoint = f"tcp://127.0.0.1:{port}"
    with Stand(endpoint=endpoint) as first:
        client = InferenceClient(endpoint, name="survivor", spec=first.spec)
        client.connect(PATIENCE_SEC)
        exchange(client, [first.decision(0, 0, flags=FREE)])
    client.submit([first.decision(0, 1)])
    wait_for(lambda: _nobody_listens(port))  # libzmq closes with a delay
    with Stand(endpoint=endpoint) as stand, unharmed(stand):
        wait_for(lambda: client.poll().lost)
        assert client.waiting == 0
        assert exchange(client, [stand.decision(0, 0, episode=1, flags=FREE)]).actions[0].episode == 1
        client.close()
        wait_for(lambda: count(stand, "malformed") > 0)  # ERR_HELLO, perhaps before anybody looked


def _nobody_listens(port: int) -> bool:
    try:
        dial(port).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.fixture
def unhurried(monkeypatch) -> None:
    """A server that drains reads all that has arrived, however long it stood still meanwhile."""
    monkeypatch.setattr("simul.inference_server.server.DRAIN_READS_SEC", PATIENCE_SEC)


@pytest.mark.usefixtures("unhurried")
def test_fault_30_a_server_that_stops_answers_everything_that_has_arrived() -> None:
    with Stand(max_batch=4) as stand, RawClient(stand.run_dir.endpoint("data"), stand.spec) as late:
        late.hello("late")
        client = stand.client("a", training=False)
        exchange(client, [stand.decision(env, 0, flags=FREE) for env in range(20)])
        with stalled(stand) as stall:
            client.submit([stand.decision(0, 1)])
            stall.wait_until_inside()
            client.submit([stand.decision(env, 1) for env in range(1, 20)])
            client.submit([stand.decision(99, 0, flags=FREE)])
            stall.wait_until_arrived(2)  # what is still on its way when a server closes gets no answer
            stand.stop_flag.set()
            stall.go.set()
            replies = gather(client)
        assert sorted(action.env for action in replies.actions) == list(range(20))
        assert [(f.env, f.code) for f in replies.failures] == [(99, ERR_NOT_READY)]
        stand._thread.join(PATIENCE_SEC)
        assert not stand._thread.is_alive()


@pytest.mark.usefixtures("unhurried")
def test_fault_30_what_comes_while_the_rest_is_answered_is_refused() -> None:
    with Stand(max_batch=1) as stand, RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        raw.hello()
        client = stand.client("a")
        exchange(client, [stand.decision(env, 0) for env in range(2)])
        with stalled(stand) as stall:
            client.submit([stand.decision(env, 1) for env in range(2)])
            stall.wait_until_inside()
            stand.stop_flag.set()
            receive, admission = stand.server._receive, stand.server._admission_control
            has_read_all, sent = threading.Event(), threading.Event()

            def receive_late(now: float) -> None:
                receive(now)
                drains = not admission.closed and not admission._sessions.accepting
                if drains and stand.server._client_socket.read_all:
                    has_read_all.set()
                    assert sent.wait(PATIENCE_SEC)
                    assert Poller([stand.server._client_socket.socket]).wait(PATIENCE_SEC)  # it has arrived

            stand.server._receive = receive_late
            stall.go.set()
            assert has_read_all.wait(PATIENCE_SEC)
            raw.send(*pack_step(1, [stand.decision(0, 0, flags=FREE)], stand.spec))
            sent.set()
            answer, _ = raw.receive()
        assert (answer.code, answer.id) == (ERR_NOT_READY, 1)


@pytest.mark.parametrize("endpoint", ["tcp://127.0.0.1:{port}", "ipc://{folder}/data.ipc"])
def test_fault_31_a_second_server_on_the_endpoint_refuses_and_the_first_serves_on(endpoint: str, tmp_path) -> None:
    endpoint = endpoint.format(port=free_port(), folder=tmp_path)
    with Stand(endpoint=endpoint) as stand, unharmed(stand), RawClient(endpoint, stand.spec) as raw:
        raw.hello()
        with pytest.raises(ConfigError, match=r"in use by another process|cannot be bound"):
            RouterSocket(endpoint)
        assert raw.alive()
