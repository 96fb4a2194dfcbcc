"""The server's wire to a learner that reads its memory: what is lent comes back, whatever becomes of the learner."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from simul.common.protocol.codec import Codec, encode
from simul.common.protocol.messages import TO_LEARNER, Credit, Unroll, Weights
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import UnrollLayout, unroll_at
from simul.common.role.run_directory import RunDir
from simul.common.transport import RouterSocket
from simul.inference_server.unrolls.buffer import SharedUnrolls
from simul.inference_server.unrolls.learner_link import SILENT_AFTER_SEC, LearnerLink
from tests.support.waiting import PATIENCE_SEC, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="granted on Linux only")

SPEC = GameSpec("test", observation_size=5, num_actions=3)
ROWS = 4  # and as many places to spare


class Ends:
    """A link, its memory, and the learner's unroll socket. `now` is what the link is told."""

    def __init__(self, run_dir: RunDir) -> None:
        self.now = 100.0
        self._endpoint = run_dir.endpoint("unrolls")
        self.memory = SharedUnrolls(UnrollLayout(SPEC, 4, 2), ROWS)
        self.link = LearnerLink(self._endpoint, run_dir.endpoint("weights"), SPEC, run_dir.token())
        self.link.share(self.memory)
        self.learner = RouterSocket(self._endpoint)
        self._codec: Codec[TO_LEARNER] = Codec(TO_LEARNER)

    def heard(self, count: int) -> list[tuple[Any, dict[str, Any]]]:
        """The next messages that the learner gets; `peer` is who said the last one."""
        found: list[tuple[Any, dict[str, Any]]] = []
        deadline = time.monotonic() + PATIENCE_SEC
        while len(found) < count:
            assert time.monotonic() < deadline, found
            if (received := self.learner.receive()) is not None:
                self.peer, frames = received
                found.append(self._codec.decode(frames))
            time.sleep(0.001)
        return found

    def grant(self, **credit: Any) -> None:
        """The learner says CREDIT, and the link has heard it."""
        self.learner.send(self.peer, encode(Credit(**credit)))
        deadline = time.monotonic() + PATIENCE_SEC
        while not self.link.sockets()[0].raw.poll(10):
            assert time.monotonic() < deadline
        self.link.poll(self.now, 0)

    def meet(self, **credit: Any) -> None:
        """The link says hello and names its memory; the learner grants."""
        self.link.poll(self.now, 0)
        types = [type(message).__name__ for message, _ in self.heard(2)]
        assert types == ["ServerHello", "UnrollMemory"]
        self.grant(**credit)

    def offer(self, row: int) -> bool:
        """An unroll of this row, as the recorder does it."""
        unroll = Unroll(length=2, first_step=0, terminated=False, truncated=False, spec_fingerprint=SPEC.fingerprint())
        place = int(self.memory.places.of_row[row])
        if self.link.reads_memory(self.now) and (lent := self.memory.places.lend(row)) is not None:
            unroll = Unroll(**{name: getattr(unroll, name) for name in FACTS}, place=lent[0], serial=lent[1])
        self.memory.tables["reward"][place] = row
        return self.link.offer(unroll, unroll_at(self.memory.tables, place, 2), self.now)

    def close(self) -> None:
        self.link.close()
        self.learner.close()


FACTS = "length", "first_step", "terminated", "truncated", "spec_fingerprint"


@pytest.fixture
def ends(tmp_path) -> Iterator[Ends]:
    run_dir = RunDir(tmp_path)
    run_dir.create()
    made = Ends(run_dir)
    yield made
    made.close()


def test_places_come_back_in_the_order_they_went_and_what_finds_none_goes_through_the_socket(ends) -> None:
    ends.meet(total=100, memory=True)
    assert all(ends.offer(row) for row in (0, 1, 2, 3, 0))
    heard = ends.heard(5)
    assert [message.place for message, _ in heard] == [0, 1, 2, 3, -1]
    assert [bool(tensors) for _, tensors in heard] == [False] * 4 + [True]
    assert ends.memory.places.lent == 4
    for taken, lent in ((0, 4), (1, 3), (3, 1), (2, 1), (5, 0), (99, 0)):
        ends.grant(total=100, taken=taken, memory=True)
        assert ends.memory.places.lent == lent
    assert (ends.link.in_memory, ends.link.taken_back) == (4, 0)


def test_a_silent_learners_places_are_taken_back_and_its_next_life_gets_new_ones(ends) -> None:
    ends.meet(total=2, memory=True)
    assert all(ends.offer(row) for row in range(3))  # one more than it has room for
    (first, _), _ = ends.heard(2)
    assert not ends.link.has_room(ends.now)
    ends.now += SILENT_AFTER_SEC
    assert not ends.offer(3)
    assert [message.length for message in ends.link.drop_backlog(ends.now)] == [2]
    ends.meet(total=9, taken=0, memory=True)
    assert ends.memory.places.lent == 0
    assert ends.memory.tables["serial"][first.place] == 0 != first.serial
    assert ends.link.taken_back == 2
    assert ends.offer(0)
    assert ends.heard(1)[0][0].place >= 0
    ends.grant(total=9, taken=1, memory=True)
    assert ends.memory.places.lent == 0


def test_what_waited_for_a_learner_goes_to_one_that_cannot_open_the_memory_through_the_socket(ends) -> None:
    ends.meet(total=0, memory=True)
    assert all(ends.offer(row) for row in range(2))
    assert ends.memory.places.lent == 2
    ends.now += SILENT_AFTER_SEC
    ends.meet(total=9, memory=False)
    heard = ends.heard(2)
    assert [(message.place, message.serial) for message, _ in heard] == [(-1, 0)] * 2
    assert [tensors["reward"].tolist() for _, tensors in heard] == [[0.0, 0.0], [1.0, 1.0]]
    assert ends.memory.places.lent == 0
    assert ends.offer(2)
    assert np.array_equal(ends.heard(1)[0][1]["reward"], [2.0, 2.0])
    assert (ends.link.in_memory, ends.link.taken_back) == (0, 0)


def test_weights_alone_do_not_keep_a_lost_connection_for_unrolls(ends, tmp_path) -> None:
    """The learner no longer knows the server there, and sends weights on the other connection."""
    weights = RouterSocket(RunDir(tmp_path).endpoint("weights"))
    with closing(weights):
        ends.meet(total=2, memory=True)
        wait_for(lambda: weights.raw.poll(0))
        peer, _ = weights.receive()
        ends.now += SILENT_AFTER_SEC
        data = np.zeros(1, np.uint8)
        message = Weights(policy="learner", policy_version=1, fingerprint="", resident=("learner",))
        weights.send(peer, encode(message, {"safetensors": data}))
        wait_for(lambda: ends.link.sockets()[1].raw.poll(0))
        assert [each.policy_version for each, _ in ends.link.poll(ends.now, 0)] == [1]
        assert not ends.offer(0)
        ends.meet(total=2, memory=True)
        assert ends.offer(0)
