"""A server's link to a learner of two ranks, over real sockets: each unroll goes to one of them, and none is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from simul.common.errors import ConfigError
from simul.common.protocol.codec import Codec, encode
from simul.common.protocol.messages import TO_LEARNER, Credit, ServerHello, Unroll
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.transport import RouterSocket
from simul.inference_server.unrolls.learner_link import RECONNECT_EVERY_SEC, SILENT_AFTER_SEC, LearnerLink
from tests.support.waiting import wait_for

SPEC = GameSpec("test", observation_size=2, num_actions=2)


class RankSocket:
    """The unroll socket of one rank: what it has heard, in order."""

    def __init__(self, endpoint: str) -> None:
        self.socket = RouterSocket(endpoint)
        self._codec: Codec[TO_LEARNER] = Codec(TO_LEARNER)
        self.hellos: list[ServerHello] = []
        self.unrolls: list[int] = []
        self.peer = b""

    def read(self) -> None:
        while (received := self.socket.receive()) is not None:
            self.peer, frames = received
            message, _ = self._codec.decode(frames)
            if isinstance(message, ServerHello):
                self.hellos.append(message)
            else:
                self.unrolls.append(message.first_step)


class Ends:
    """A link, and two ranks. `now` is what the link is told."""

    def __init__(self, run_dir: RunDir) -> None:
        self.now = 100.0
        endpoints = [run_dir.endpoint("unrolls", rank) for rank in range(2)]
        self.ranks = [RankSocket(endpoint) for endpoint in endpoints]
        weights = run_dir.endpoint("weights")
        self.link = LearnerLink(endpoints[0], weights, SPEC, run_dir.token(), other_ranks=endpoints[1:])
        self._offered = 0

    def heard(self, *counts: int) -> None:
        """Each rank has heard as many unrolls."""

        def all_heard() -> bool:
            for rank in self.ranks:
                rank.read()
            return [len(rank.unrolls) for rank in self.ranks] == list(counts)

        wait_for(all_heard)

    def meet(self, hellos: int) -> None:
        """The link has said hello so many times to each."""
        self.link.poll(self.now, 0)

        def greeted() -> bool:
            for rank in self.ranks:
                rank.read()
            return all(len(rank.hellos) == hellos for rank in self.ranks)

        wait_for(greeted)

    def grant(self, rank: int, total: int, taken: int = 0) -> None:
        """The rank says CREDIT, and the link has heard it."""
        before = self.link.credit_left
        self.ranks[rank].socket.send(self.ranks[rank].peer, encode(Credit(total=total, taken=taken)))
        deadline = time.monotonic() + 30.0
        while self.link.credit_left == before and self.link.backlog() == (0, 0):
            assert time.monotonic() < deadline
            self.link.poll(self.now, 0)
            time.sleep(0.001)

    def offer(self) -> bool:
        number, self._offered = self._offered, self._offered + 1
        facts = {"terminated": False, "truncated": False, "spec_fingerprint": SPEC.fingerprint()}
        return self.link.offer(Unroll(length=1, first_step=number, **facts), TENSORS, self.now)

    def close(self) -> None:
        self.link.close()
        for rank in self.ranks:
            rank.socket.close()


TENSORS = {"reward": np.zeros(1, np.float32)}


@pytest.fixture
def ends(tmp_path) -> Iterator[Ends]:
    run_dir = RunDir(tmp_path)
    run_dir.create()
    made = Ends(run_dir)
    yield made
    made.close()


def test_each_unroll_goes_where_most_credit_is_left_and_what_no_rank_takes_waits(ends) -> None:
    ends.meet(1)
    assert ends.ranks[0].hellos[0].token == ends.ranks[1].hellos[0].token
    ends.grant(0, total=2)
    ends.grant(1, total=4)
    assert all(ends.offer() for _ in range(6))
    ends.heard(2, 4)
    assert sorted(ends.ranks[0].unrolls + ends.ranks[1].unrolls) == list(range(6))
    assert ends.ranks[1].unrolls[:2] == [0, 1], "it had granted two more"
    assert ends.offer()
    assert ends.link.backlog() == (1, 1)
    assert not ends.link.has_room(ends.now)
    ends.grant(0, total=3, taken=2)
    wait_for(lambda: ends.link.poll(ends.now, 0) == [] and ends.link.backlog() == (0, 0))
    ends.heard(3, 4)


def test_a_rank_that_is_silent_is_asked_again_and_the_other_takes_what_comes(ends) -> None:
    ends.meet(1)
    ends.grant(0, total=1)
    ends.grant(1, total=5)
    ends.now += SILENT_AFTER_SEC - 0.5
    ends.grant(1, total=6)
    ends.now += 0.5 + RECONNECT_EVERY_SEC  # rank 0 is silent for long enough, and rank 1 is not
    assert ends.link.alive(ends.now)
    ends.link.poll(ends.now, 7)
    assert ends.link.credit_left == 6, "the silent rank's credit is void"
    assert all(ends.offer() for _ in range(6))
    ends.heard(0, 6)
    assert [hello.served_version for hello in ends.ranks[0].hellos] == [0, 7]
    assert len(ends.ranks[1].hellos) == 1
    ends.now += SILENT_AFTER_SEC
    assert not ends.link.alive(ends.now)
    assert not ends.offer(), "all are silent: the learner is dead"


def test_a_rank_that_starts_elsewhere_is_looked_up_and_tried_where_it_was_while_nobody_knows(ends, tmp_path) -> None:
    moved = RankSocket(f"ipc://{tmp_path}/moved.ipc")
    known: list[str] = []
    run_dir = RunDir(tmp_path)

    def look_up(rank: int) -> tuple[str, str]:
        if not known:
            raise ConfigError("the address book cannot be read")
        return (known[0], "") if rank else (run_dir.endpoint("unrolls"), run_dir.endpoint("weights"))

    ends.link._look_up = look_up
    try:
        ends.meet(1)
        known.append(f"ipc://{tmp_path}/moved.ipc")
        ends.now += SILENT_AFTER_SEC + RECONNECT_EVERY_SEC
        ends.link.poll(ends.now, 3)

        def greeted() -> bool:
            moved.read()
            ends.ranks[0].read()
            return bool(moved.hellos) and len(ends.ranks[0].hellos) == 2

        wait_for(greeted)
        assert moved.hellos[0].served_version == 3
        assert len(ends.ranks[1].hellos) == 1
    finally:
        moved.socket.close()
