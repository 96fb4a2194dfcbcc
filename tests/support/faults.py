"""What a fault may not do: the server lives, a neighbour plays on, newcomers are served, every book is balanced."""

from __future__ import annotations

import itertools
import socket as plain_socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from simul.common.nets.build import build_network
from simul.common.protocol.codec import Codec
from simul.common.protocol.decisions import start_flags
from simul.common.protocol.messages import ABORTED, TO_SUPERVISOR, Report
from simul.common.transport import PullSocket
from tests.support.stand import Stand, exchange
from tests.support.waiting import PATIENCE_SEC, wait_for

FREE = start_flags(record=False, greedy=False)
ENVS = range(3)
_names = itertools.count()


@contextmanager
def unharmed(stand: Stand, counter: str | None = None, by: int | None = None) -> Iterator[Neighbour]:
    """What happens in the block is a fault of somebody else's, and is counted.

    A neighbour that played before plays on as if nothing had happened, a newcomer is served, and the server's books
    are balanced. `counter`: what must have gone up, such as "rows_errored.ERR_ORDER"; `by`: by exactly so much. None
    is for the few faults that the server cannot see.
    """
    neighbour = Neighbour(stand)
    before = count(stand, counter) if counter else 0
    yield neighbour
    neighbour.play()
    newcomer = Neighbour(stand)
    newcomer.leave()
    neighbour.leave()
    if counter:
        wait_for(lambda: count(stand, counter) >= before + (by or 1))
        assert by in (None, count(stand, counter) - before), f"{counter}: {before} before, then {count(stand, counter)}"
    assert_balanced(stand)


def count(stand: Stand, counter: str) -> int:
    """A figure of the server; "sessions_ended.idle" is one within another."""
    figure: Any = stand.server.metrics()
    for name in counter.split("."):
        figure = figure.get(name, 0) if figure else 0
    return int(figure)


def _wait_for_next_turn(stand: Stand) -> None:
    """The last reply is read before its turn of the loop is over."""
    beat = stand.server._operations.watchdog._beat_at
    wait_for(lambda: stand.server._operations.watchdog._beat_at != beat)


def let_idle(stand: Stand, *clients: str) -> None:
    """The sessions of these clients were last touched a day ago."""
    _wait_for_next_turn(stand)
    for client in stand.server._client_socket._clients:
        if client.name in clients:
            stand.server._admission_control._sessions.touched_at[client.seats.slots] -= 86_400.0


def assert_balanced(stand: Stand) -> None:
    """Every slot has one owner, every session and every recorded step is accounted for, nobody waits for ever.

    Seen at one moment: the loop may be busy with somebody's goodbye.
    """
    deadline = time.monotonic() + PATIENCE_SEC
    while True:
        try:
            return _assert_balanced_now(stand)
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _assert_balanced_now(stand: Stand) -> None:
    wait_for(lambda: not stand.server.metrics()["waiting"] + stand.server.metrics()["evaluations_waiting"])
    _wait_for_next_turn(stand)
    stand.server._admission_control._sessions.check()
    assert stand.server._admission_control._in_flight.total == 0
    metrics, steps = stand.server.metrics(), stand.server.metrics()["steps"]
    assert metrics["health"] == "ok"
    assert metrics["sessions_started"] == metrics["sessions"] + sum(metrics["sessions_ended"].values())
    assert steps["seen"] == steps["sent"] + sum(steps["dropped"].values()) + steps["open"]


class Neighbour:
    """A client that was there before the fault; its games must go on as if nothing had happened.

    What the server answers is compared with the network stepped through these very games, and nothing else.
    """

    def __init__(self, stand: Stand) -> None:
        self._stand = stand
        self._client = stand.client(f"neighbour-{next(_names)}", training=False)
        self._step = 0
        self._alone: _Alone | None = _Alone(stand)
        self.play()

    @property
    def answered(self) -> int:
        """Rows that it sent and that were answered."""
        return self._client.answered

    def play(self, steps: int = 3) -> None:
        """Its games go on, step by step."""
        for _ in range(steps):
            flags = FREE if self._step == 0 else 0
            rows = [self._stand.decision(env, self._step, flags=flags) for env in ENVS]
            actions = sorted(exchange(self._client, rows).actions, key=lambda action: action.env)
            assert [(action.env, action.step) for action in actions] == [(env, self._step) for env in ENVS]
            assert all(row.mask is not None and row.mask[a.action] for row, a in zip(rows, actions))
            if any(action.policy_version for action in actions):
                self._alone = None  # of other weights from now on
            if self._alone is not None:
                log_probs, values = self._alone.step(np.stack([r.observation for r in rows]), [r.mask for r in rows])
                assert np.allclose([action.value for action in actions], values, atol=1e-4)
                assert np.allclose([a.log_prob for a in actions], [p[a.action] for p, a in zip(log_probs, actions)],
                                   atol=1e-4)  # fmt: skip
            self._step += 1

    def leave(self) -> None:
        """Its games end, it says goodbye."""
        ends = [self._stand.decision(e, self._step, kind=ABORTED, observation=None, mask=None) for e in ENVS]
        assert {action.action for action in exchange(self._client, ends).actions} == {-1}
        self._client.close()


class _Alone:
    """The stand's first weights, and the recurrent states of B games; observation float32 [B, D], mask uint8 [B, A]."""

    def __init__(self, stand: Stand) -> None:
        self._network = build_network(stand.config.network, stand.spec).eval()
        self._state = self._network.initial_state(len(ENVS))

    @torch.inference_mode()
    def step(self, observation: np.ndarray, mask: Any) -> tuple[np.ndarray, np.ndarray]:
        """The games' next step: log-probabilities [B, A], values [B]."""
        legal = torch.from_numpy(np.stack(mask)) > 0
        logits, value, self._state = self._network(torch.from_numpy(observation), legal, self._state)
        return torch.log_softmax(logits.masked_fill(~legal, -torch.inf), dim=1).numpy(), value.numpy()


def reported(status: PullSocket) -> list[str]:
    """Events of the reports that have arrived at the supervisor's socket."""
    codec: Codec[Report] = Codec(TO_SUPERVISOR)
    return [codec.decode(frames)[0].event for frames in iter(status.receive, None)]


def dial(port: int) -> plain_socket.socket:
    """A TCP connection to the server."""
    return plain_socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SEC)
