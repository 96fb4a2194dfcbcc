"""A real server and the learner's own I/O thread: through memory comes what comes through the socket, bit for bit."""

from __future__ import annotations

import sys
import time

import pytest
import torch

from simul.common.protocol.messages import TERMINATED, TRUNCATED
from simul.common.protocol.specs import GameSpec
from simul.learner.training.minibatches import Minibatch, make_minibatch
from tests.support.learner_io_stand import LearnerIOStand
from tests.support.stand import Stand, exchange
from tests.support.waiting import PATIENCE_SEC, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="granted on Linux only")

SPEC = GameSpec(name="test/halves", observation_size=7, num_actions=5, observation_dtype="float16")
STEPS = 3 * 9


def _reads_memory(stand: Stand) -> bool:
    return stand.server._recorder._link.reads_memory(time.monotonic())


def _minibatch(*, shared_memory: bool) -> Minibatch:
    with LearnerIOStand(SPEC, deterministic=True, shared_memory=shared_memory) as stand:
        client = stand.client("a")
        wait_for(lambda: _reads_memory(stand) == shared_memory)
        for step in range(9):
            exchange(client, [stand.decision(env, step, reward=step / 3) for env in range(3)])
        final = stand.decision(0, 9).observation
        ends = [
            stand.decision(0, 9, kind=TRUNCATED, reward=1.5, observation=final, mask=None),
            *(stand.decision(env, 9, kind=TERMINATED, reward=2.5, observation=None, mask=None) for env in (1, 2)),
        ]
        exchange(client, ends)
        unrolls = stand.learner.io.unrolls.take_batch(STEPS, PATIENCE_SEC, 0, 10)
        assert sorted(unroll.length for unroll in unrolls) == [1] * 3 + [4] * 6
        wait_for(lambda: stand.server.metrics()["unrolls"]["sent"] == 9)  # counted behind the message
        counts = stand.server.metrics()["unrolls"]
        assert counts == {
            "completed": 9, "sent": 9, "waiting": 0, "in_memory": 9 * shared_memory, "taken_back": 0, "dropped": {},
        }  # fmt: skip
        if shared_memory:
            wait_for(lambda: stand.server._recorder._buffer._places.lent == 0)
    return make_minibatch(unrolls, 0.99, torch.device("cpu"))


def test_both_ways_make_the_same_minibatch() -> None:
    by_memory, by_socket = _minibatch(shared_memory=True), _minibatch(shared_memory=False)
    for name in ("observation", "mask", "state", "lengths", "policy_version"):
        assert torch.equal(getattr(by_memory, name), getattr(by_socket, name)), name
    for name in ("mask", "action", "reward", "behaviour_log_prob", "discount", "valid"):
        assert torch.equal(getattr(by_memory.trajectories, name), getattr(by_socket.trajectories, name)), name


def test_a_learner_that_never_gives_places_back_costs_the_memory_and_no_unroll() -> None:
    with Stand(max_sessions=2, unroll_length=1) as stand:
        stand.learner.keeps_places = True
        client = stand.client("a")
        wait_for(lambda: _reads_memory(stand))
        for step in range(7):
            exchange(client, [stand.decision(0, step)])
        exchange(client, stand.ends(7, 0))
        wait_for(lambda: len(stand.learner.unrolls) == 7)
        assert [message.place >= 0 for message, _ in stand.learner.unrolls] == [True] * 2 + [False] * 5
        stand.learner.keeps_places = False
        wait_for(lambda: stand.server._recorder._buffer._places.lent == 0)
        exchange(client, [stand.decision(0, 0, episode=1)])
        exchange(client, [stand.decision(0, 1, episode=1)])
        wait_for(lambda: len(stand.learner.unrolls) == 8)
        assert stand.learner.unrolls[-1][0].place >= 0
        wait_for(lambda: stand.server.metrics()["steps"]["sent"] >= 8)  # counted behind the message
        assert stand.server.metrics()["steps"]["sent"] == 8
