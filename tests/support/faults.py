"""What every fault test ends with: the server is alive, its neighbours are served, its books are whole."""

from __future__ import annotations

import itertools
import socket as plain_socket
import time
from collections.abc import Callable

from common.client import InferenceClient
from common.decisions import start_flags
from common.messages import ABORTED
from common.transport import RouterSocket
from tests.support.stand import Stand, exchange

FREE = start_flags(record=False, greedy=False)
_names = itertools.count()


class Neighbour:
    """A client that was there before the fault; its games must go on as if nothing had happened."""

    def __init__(self, stand: Stand) -> None:
        self._stand = stand
        self._client = _client(stand)
        self._step = 0
        self.play()

    def play(self, steps: int = 3) -> None:
        """Its games go on, step by step."""
        for _ in range(steps):
            flags = FREE if self._step == 0 else 0
            actions = exchange(
                self._client, [self._stand.decision(env, self._step, flags=flags) for env in range(3)]
            ).actions
            assert sorted(action.env for action in actions) == [0, 1, 2]
            assert all(self._stand.decision(a.env, a.step).mask[a.action] for a in actions)
            self._step += 1

    def leave(self) -> None:
        """Its games end, it says goodbye."""
        ends = [self._stand.decision(e, self._step, kind=ABORTED, observation=None, mask=None) for e in range(3)]
        assert {action.action for action in exchange(self._client, ends).actions} == {-1}
        self._client.close()


def assert_serves(stand: Stand, neighbour: Neighbour | None = None) -> None:
    """A newcomer plays a game, the neighbour's go on, every slot has one owner."""
    if neighbour is not None:
        neighbour.play()
    newcomer = Neighbour(stand)
    newcomer.leave()
    assert stand.server.metrics()["health"] == "ok"
    stand.server._sessions.check()


def wait_for(condition: Callable[[], object], timeout_sec: float = 10.0) -> None:
    """Fails where `condition()` does not come true."""
    deadline = time.monotonic() + timeout_sec
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with RouterSocket("tcp://127.0.0.1:*") as probe:
        return int(probe.raw.LAST_ENDPOINT.decode().rpartition(":")[2])


def dial(port: int) -> plain_socket.socket:
    """A TCP connection to the server."""
    return plain_socket.create_connection(("127.0.0.1", port), timeout=5)


def _client(stand: Stand) -> InferenceClient:
    name = f"neighbour-{next(_names)}"
    endpoint = stand.config.server.endpoint or stand.run_dir.endpoint("data")
    client = InferenceClient(endpoint, name=name, spec=stand.spec)
    client.connect()
    stand._clients.append(client)
    return client
