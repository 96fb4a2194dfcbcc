"""The server's wire to its learner, over real sockets: unrolls lent in memory come back, ranks share what is sent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from simul.common.errors import ConfigError
from simul.common.protocol.codec import Codec, encode
from simul.common.protocol.messages import TO_LEARNER, Credit, LentUnrolls, ServerHello, Unroll, UnrollMemory, Weights
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import UnrollLayout, unroll_at
from simul.common.role.run_directory import RunDir
from simul.common.transport import RouterSocket
from simul.inference_server.unrolls.buffer import SharedUnrolls
from simul.inference_server.unrolls.learner_link import NO_TENSORS, RECONNECT_EVERY_SEC, SILENT_AFTER_SEC, LearnerLink
from tests.support.waiting import wait_for

linux = pytest.mark.skipif(sys.platform != "linux", reason="granted on Linux only")

SPEC = GameSpec("test", observation_size=5, num_actions=3)
ROWS = 4  # and as many places to spare
FACTS = {"first_step": 0, "terminated": False, "truncated": False, "spec_fingerprint": SPEC.fingerprint()}


class RankSocket:
    """The unroll socket of one rank: what it has heard, in order."""

    def __init__(self, endpoint: str) -> None:
        self.socket = RouterSocket(endpoint)
        self._codec: Codec[TO_LEARNER] = Codec(TO_LEARNER)
        self.hellos: list[ServerHello] = []
        self.memories: list[UnrollMemory] = []
        self.unrolls: list[tuple[Unroll, dict[str, Any]]] = []
        self.together: list[int] = []  # unrolls of each message with several
        self.peer = b""

    def read(self) -> None:
        while (received := self.socket.receive()) is not None:
            self.peer, frames = received
            message, tensors = self._codec.decode(frames)
            if isinstance(message, LentUnrolls):
                self.together.append(len(message.unrolls))
                self.unrolls.extend((unroll, {}) for unroll in message.unrolls)
            elif isinstance(message, Unroll):
                self.unrolls.append((message, tensors))
            else:
                (self.hellos if isinstance(message, ServerHello) else self.memories).append(message)


class Ends:
    """A link, its memory if it has one, and the ranks of a learner. `now` is what the link is told."""

    def __init__(self, run_dir: RunDir, ranks: int, *, memory: bool) -> None:
        self.now = 100.0
        endpoints = [run_dir.endpoint("unrolls", rank) for rank in range(ranks)]
        self.ranks = [RankSocket(endpoint) for endpoint in endpoints]
        weights = run_dir.endpoint("weights")
        self.link = LearnerLink(endpoints[0], weights, SPEC, run_dir.token(), other_ranks=endpoints[1:])
        if memory:
            self.memory = SharedUnrolls(UnrollLayout(SPEC, 4, 2), ROWS)
            self.link.share(self.memory)

    def read_until(self, condition: Callable[[], object]) -> None:
        """The ranks read until `condition()`."""

        def read() -> object:
            for rank in self.ranks:
                rank.read()
            return condition()

        wait_for(read)

    def heard(self, *counts: int) -> list[tuple[Unroll, dict[str, Any]]]:
        """Each rank has heard as many unrolls: those of the first one."""
        self.read_until(lambda: [len(rank.unrolls) for rank in self.ranks] == list(counts))
        return self.ranks[0].unrolls

    def meet(self, hellos: int = 1, **credit: Any) -> None:
        """The link has said hello so many times to each; where there is `credit`, the first rank grants it."""
        self.link.poll(self.now, 0)
        self.read_until(lambda: all(len(rank.hellos) == hellos for rank in self.ranks))
        if credit:
            self.read_until(lambda: len(self.ranks[0].memories) == hellos)
            self.grant(0, **credit)

    def grant(self, rank: int, **credit: Any) -> None:
        """The rank says CREDIT, and the link has heard it."""
        self.ranks[rank].socket.send(self.ranks[rank].peer, encode(Credit(**credit)))
        wait_for(lambda: any(socket.raw.poll(10) for socket in self.link.sockets()))
        self.link.poll(self.now, 0)

    def offer(self, number: int = 0) -> bool:
        """An unroll that comes through the socket."""
        unroll = Unroll(length=1, **FACTS | {"first_step": number})
        return self.link.offer(unroll, {"reward": np.zeros(1, np.float32)}, self.now)

    def offer_row(self, row: int, *, flush: bool = True) -> bool:
        """An unroll of this row of the memory, as the recorder does it."""
        unroll, places = Unroll(length=2, **FACTS), self.memory.places
        place = int(places.of_recording[row])
        if self.link.reads_memory(self.now) and (lent := places.lend(row)) is not None:
            unroll = Unroll(length=2, **FACTS, place=lent[0], serial=lent[1])
        self.memory.tables["reward"][place] = row
        tensors = unroll_at(self.memory.tables, place, 2) if unroll.place < 0 else NO_TENSORS
        taken = self.link.offer(unroll, tensors, self.now)
        if flush:
            self.link.flush()
        return taken

    def close(self) -> None:
        self.link.close()
        for rank in self.ranks:
            rank.socket.close()


@pytest.fixture
def run_dir(tmp_path) -> RunDir:
    made = RunDir(tmp_path)
    made.create()
    return made


@pytest.fixture
def ends(run_dir) -> Iterator[Ends]:
    with closing(Ends(run_dir, 1, memory=True)) as made:
        yield made


@pytest.fixture
def two_ranks(run_dir) -> Iterator[Ends]:
    with closing(Ends(run_dir, 2, memory=False)) as made:
        yield made


@linux
def test_places_come_back_in_the_order_they_went_and_what_finds_none_goes_through_the_socket(ends) -> None:
    ends.meet(total=100, memory=True)
    assert all(ends.offer_row(row) for row in (0, 1, 2, 3, 0))
    heard = ends.heard(5)
    assert [message.place for message, _ in heard] == [0, 1, 2, 3, -1]
    assert [bool(tensors) for _, tensors in heard] == [False] * 4 + [True]
    assert ends.memory.places.lent == 4
    for taken, lent in ((0, 4), (1, 3), (3, 1), (2, 1), (5, 0), (99, 0)):
        ends.grant(0, total=100, taken=taken, memory=True)
        assert ends.memory.places.lent == lent
    assert (ends.link.in_memory, ends.link.taken_back) == (4, 0)


@linux
def test_lent_unrolls_of_a_batch_go_in_one_message_before_what_is_offered_after_them(ends) -> None:
    ends.meet(total=100, memory=True)
    assert all(ends.offer_row(row, flush=False) for row in (0, 1, 2, 3, 0, 1))  # the last two find no place
    ends.link.flush()
    heard = ends.heard(6)
    assert [message.place for message, _ in heard] == [0, 1, 2, 3, -1, -1]
    assert ends.ranks[0].together == [4]
    ends.grant(0, total=100, taken=5, memory=True)
    assert ends.memory.places.lent == 0
    assert ends.offer_row(2, flush=False)
    ends.link.poll(ends.now, 0)
    assert ends.heard(7)[6][0].place >= 0


@linux
def test_a_silent_learners_places_are_taken_back_and_its_next_life_gets_new_ones(ends) -> None:
    ends.meet(total=2, memory=True)
    assert all(ends.offer_row(row) for row in range(3))  # one more than it has room for
    (first, _), _ = ends.heard(2)
    assert not ends.link.has_room(ends.now)
    ends.now += SILENT_AFTER_SEC
    assert not ends.offer_row(3)
    assert [message.length for message in ends.link.drop_backlog(ends.now)] == [2]
    ends.meet(2, total=9, taken=0, memory=True)
    assert ends.memory.places.lent == 0
    assert ends.memory.tables["serial"][first.place] == 0 != first.serial
    assert ends.link.taken_back == 2
    assert ends.offer_row(0)
    assert ends.heard(3)[2][0].place >= 0
    ends.grant(0, total=9, taken=1, memory=True)
    assert ends.memory.places.lent == 0


@linux
def test_what_waited_for_a_learner_goes_to_one_that_cannot_open_the_memory_through_the_socket(ends) -> None:
    ends.meet(total=0, memory=True)
    assert all(ends.offer_row(row) for row in range(2))
    assert ends.memory.places.lent == 2
    ends.now += SILENT_AFTER_SEC
    ends.meet(2, total=9, memory=False)
    heard = ends.heard(2)
    assert [(message.place, message.serial) for message, _ in heard] == [(-1, 0)] * 2
    assert [tensors["reward"].tolist() for _, tensors in heard] == [[0.0, 0.0], [1.0, 1.0]]
    assert ends.memory.places.lent == 0
    assert ends.offer_row(2)
    assert np.array_equal(ends.heard(3)[2][1]["reward"], [2.0, 2.0])
    assert (ends.link.in_memory, ends.link.taken_back) == (0, 0)


@linux
def test_weights_alone_do_not_keep_a_lost_connection_for_unrolls(ends, run_dir) -> None:
    """The learner no longer knows the server there, and sends weights on the other connection."""
    with closing(RouterSocket(run_dir.endpoint("weights"))) as weights:
        ends.meet(total=2, memory=True)
        wait_for(lambda: weights.raw.poll(0))
        peer, _ = weights.receive()
        ends.now += SILENT_AFTER_SEC
        message = Weights(policy="learner", policy_version=1, fingerprint="", resident=("learner",))
        weights.send(peer, encode(message, {"safetensors": np.zeros(1, np.uint8)}))
        wait_for(lambda: ends.link.sockets()[1].raw.poll(0))
        assert [each.policy_version for each, _ in ends.link.poll(ends.now, 0)] == [1]
        assert not ends.offer_row(0)
        ends.meet(2, total=2, memory=True)
        assert ends.offer_row(0)


def test_each_unroll_goes_where_most_credit_is_left_and_what_no_rank_takes_waits(two_ranks) -> None:
    ends = two_ranks
    ends.meet()
    first, second = ends.ranks
    assert first.hellos[0].token == second.hellos[0].token
    ends.grant(0, total=2)
    ends.grant(1, total=4)
    assert all(ends.offer(number) for number in range(6))
    ends.heard(2, 4)
    assert sorted(message.first_step for message, _ in first.unrolls + second.unrolls) == list(range(6))
    assert [message.first_step for message, _ in second.unrolls[:2]] == [0, 1], "it had granted two more"
    assert ends.offer()
    assert ends.link.backlog() == (1, 1)
    assert not ends.link.has_room(ends.now)
    ends.grant(0, total=3, taken=2)
    wait_for(lambda: ends.link.poll(ends.now, 0) == [] and ends.link.backlog() == (0, 0))
    ends.heard(3, 4)


def test_a_rank_that_is_silent_is_asked_again_and_the_other_takes_what_comes(two_ranks) -> None:
    ends = two_ranks
    ends.meet()
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
    ends.read_until(lambda: [hello.served_version for hello in ends.ranks[0].hellos] == [0, 7])
    assert len(ends.ranks[1].hellos) == 1
    ends.now += SILENT_AFTER_SEC
    assert not ends.link.alive(ends.now)
    assert not ends.offer(), "all are silent: the learner is dead"


def test_a_rank_that_starts_elsewhere_is_looked_up_and_tried_where_it_was_while_it_is_not_known(
    two_ranks, run_dir
) -> None:
    ends, elsewhere = two_ranks, f"ipc://{run_dir.root}/moved.ipc"
    known: list[str] = []

    def look_up(rank: int) -> tuple[str, str]:
        if not known:
            raise ConfigError("the address book cannot be read")
        return (known[0], "") if rank else (run_dir.endpoint("unrolls"), run_dir.endpoint("weights"))

    ends.link._look_up = look_up
    moved = RankSocket(elsewhere)
    with closing(moved.socket):
        ends.meet()
        known.append(elsewhere)
        ends.now += SILENT_AFTER_SEC + RECONNECT_EVERY_SEC
        ends.link.poll(ends.now, 3)
        ends.read_until(lambda: moved.read() or (moved.hellos and len(ends.ranks[0].hellos) == 2))
        assert moved.hellos[0].served_version == 3
        assert len(ends.ranks[1].hellos) == 1
