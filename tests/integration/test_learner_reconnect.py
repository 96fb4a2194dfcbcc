"""A server's link to the learner over TCP that is cut: weights and unrolls go on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from simul.common.protocol.messages import Weights
from simul.common.role.run_directory import RunDir
from simul.common.transport import RouterSocket
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from simul.inference_server.unrolls.learner_link import LearnerLink
from simul.learner.io.credits import CreditAllocator
from simul.learner.io.learner_io import LearnerIO
from simul.learner.io.server_handshake import ServerHandshake
from simul.learner.io.unrolls import UnrollChecker
from tests.support.cut_tcp import CutTcp
from tests.support.learner_io_stand import SPEC, one_step
from tests.support.waiting import wait_for


class Ends:
    """A learner's sockets and a server's link, each of whose connections can be cut."""

    def __init__(self, run_dir: RunDir, opened: ExitStack) -> None:
        ports = [free_port(), free_port()]
        unrolls, weights = (opened.enter_context(closing(RouterSocket(f"tcp://127.0.0.1:{port}"))) for port in ports)
        handshake = ServerHandshake(run_dir.token(), SPEC.fingerprint())
        self.io = LearnerIO(
            unrolls, weights, UnrollChecker(SPEC, 0, 1), CreditAllocator(64, 1), handshake
        )  # fmt: skip
        opened.callback(self.io.close)
        self.io.publish("learner", 0, b"weights", ("learner",))
        self.io.start()
        self.unrolls, self.weights = (opened.enter_context(CutTcp(port)) for port in ports)
        self.link = LearnerLink(self.unrolls.endpoint, self.weights.endpoint, SPEC, run_dir.token())
        opened.callback(self.link.close)
        self.version = -1

    def poll(self, *, acknowledge: bool = True) -> list[Weights]:
        """What came; `version` is the newest."""
        found = [weights for weights, _ in self.link.poll(time.monotonic(), self.version)]
        for weights in found:
            self.version = max(self.version, weights.policy_version)
            if acknowledge:
                self.link.acknowledge(weights)
        return found

    def serves(self, version: int) -> bool:
        self.poll()
        return self.version == version


@pytest.fixture
def ends(tmp_path) -> Iterator[Ends]:
    run_dir = RunDir(tmp_path)
    run_dir.create()
    with ExitStack() as opened:
        made = Ends(run_dir, opened)
        wait_for(lambda: made.serves(0))
        yield made


def test_weights_come_again_after_their_connection_alone_was_lost(ends) -> None:
    for version in (1, 2):
        ends.weights.cut()
        wait_for(lambda: ends.weights.accepted == version + 1)  # noqa: B023 - called at once
        ends.io.publish("learner", version, b"weights", ("learner",))
        wait_for(lambda: ends.serves(version))  # noqa: B023
    assert ends.unrolls.accepted == 1, "the other connection stays"
    assert ends.link.offer(*one_step(), time.monotonic())
    wait_for(lambda: ends.io.unrolls.waiting_rows == 1)


def test_weights_whose_acknowledgement_was_lost_hold_up_none_that_follow(ends) -> None:
    ends.io.publish("learner", 1, b"weights", ("learner",))
    wait_for(lambda: ends.poll(acknowledge=False))
    ends.weights.cut()
    ends.io.publish("learner", 2, b"weights", ("learner",))
    wait_for(lambda: ends.serves(2))
    assert len(ends.io.publisher._servers) == 1, "the lost connection holds no memory"


def test_unrolls_go_again_after_their_connection_was_lost(ends) -> None:
    ends.unrolls.cut()

    def arrived() -> bool:
        ends.poll()
        ends.link.offer(*one_step(), time.monotonic())
        return ends.io.unrolls.waiting_rows > 0

    wait_for(lambda: ends.unrolls.accepted >= 2)
    wait_for(arrived)
    ends.io.publish("learner", 1, b"weights", ("learner",))
    wait_for(lambda: ends.serves(1))
