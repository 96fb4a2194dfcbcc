"""Two servers' links at one learner over real sockets: credit follows what they send."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from simul.common.protocol.messages import Unroll
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.transport import RouterSocket
from simul.inference_server.unrolls.learner_link import LearnerLink
from simul.learner.batches import UnrollChecker
from simul.learner.unroll_receiver import CreditAllocator, UnrollReceiver
from simul.learner.weight_publisher import ServerHandshake
from tests.support.waiting import wait_for

SPEC = GameSpec("test", observation_size=2, num_actions=2)
CAPACITY = 64  # steps; an unroll here has one


def one_step() -> tuple[Unroll, dict[str, np.ndarray]]:
    facts = {"terminated": False, "truncated": False, "spec_fingerprint": SPEC.fingerprint()}
    tensors = {
        "observation": np.zeros((2, 2), np.float32), "mask": np.ones((2, 2), np.uint8),
        "value": np.zeros(2, np.float32), "action": np.zeros(1, np.int32), "log_prob": np.zeros(1, np.float32),
        "reward": np.zeros(1, np.float32), "policy_version": np.zeros(1, np.int64), "state": np.zeros(0, np.float32),
    }  # fmt: skip
    return Unroll(length=1, first_step=0, **facts), tensors


class Pair:
    """A learner's receiver and the links of two servers."""

    def __init__(self, run_dir: RunDir) -> None:
        self.endpoints = run_dir.endpoint("unrolls"), run_dir.endpoint("weights")
        self.sockets = [RouterSocket(endpoint) for endpoint in self.endpoints]
        handshake = ServerHandshake(run_dir.token(), SPEC.fingerprint())
        credits = CreditAllocator(CAPACITY, 1)
        self.receiver = UnrollReceiver(*self.sockets, UnrollChecker(SPEC, 0, 1), credits, handshake)
        self.receiver.publish("learner", 0, b"weights", ("learner",))
        self.receiver.start()
        self.links = [LearnerLink(*self.endpoints, SPEC, run_dir.token()) for _ in range(2)]
        wait_for(self.connected)

    def connected(self) -> bool:
        self.poll()
        return all(link.alive(time.monotonic()) for link in self.links)

    def poll(self) -> None:
        for link in self.links:
            link.poll(time.monotonic(), 0)

    def fill(self, link: LearnerLink, steps: int) -> None:
        """The server behind `link` sends as long as it has credit, until `steps` wait at the learner."""

        def full() -> bool:
            self.poll()
            while not link.backlog()[0]:
                assert link.offer(*one_step(), time.monotonic())
            return self.receiver.waiting_steps >= steps

        wait_for(full)

    def take_all(self) -> None:
        assert self.receiver.take_batch(self.receiver.waiting_steps, 1.0, 0, 20)

    def close(self) -> None:
        for link in self.links:
            link.close()
        self.receiver.close()
        for socket in self.sockets:
            socket.close()


@pytest.fixture
def pair(tmp_path) -> Iterator[Pair]:
    run_dir = RunDir(tmp_path)
    run_dir.create()
    made = Pair(run_dir)
    yield made
    made.close()


def test_a_busy_server_has_nine_tenths_of_the_credit_beside_an_idle_one(pair) -> None:
    for busy in pair.links:  # first the one, then the other
        for _ in range(10):
            pair.fill(busy, CAPACITY // 2)
            pair.take_all()
        for _ in range(10):
            pair.fill(busy, round(0.9 * CAPACITY))
            pair.take_all()
