"""Weights to scripted servers: what each gets, what it owes, and the memory that both cost."""

from __future__ import annotations

import gc
import os
import sys

import numpy as np
import pytest

from simul.common.nets.io import fingerprint
from simul.common.protocol.codec import Codec, encode
from simul.common.protocol.messages import FROM_LEARNER, PROTOCOL, ServerHello, Weights, WeightsAck
from simul.common.protocol.shared_memory import open_sealed
from simul.learner.io.server_handshake import MOST_UNNOTED, ServerHandshake
from simul.learner.io.weight_publisher import WeightPublisher
from tests.support.anonymous import anonymous_files

SPEC = "0" * 16
TOKEN = "the run's"


class FakeSocket:
    """A router whose peers read what they like, and acknowledge it unless they are `stopped`.

    Those that are `blind` cannot read what lies in memory, and say so.
    """

    def __init__(self) -> None:
        self.endpoint = "ipc://here"
        self.inbound: list[tuple[bytes, list[bytes]]] = []
        self.outbound: dict[bytes, list[tuple[str, int, tuple[str, ...]]]] = {}
        self.gone: set[bytes] = set()
        self.full: set[bytes] = set()
        self.stopped: set[bytes] = set()
        self.blind: set[bytes] = set()
        self.in_memory: list[bool] = []  # of each message that was sent
        self.codec = Codec[Weights](FROM_LEARNER)

    def receive(self):
        return self.inbound.pop(0) if self.inbound else None

    def deliver(self, peer, frames) -> str:
        if peer in self.gone:
            return "gone"
        if peer in self.full:
            return "full"
        message, tensors = self.codec.decode(frames)
        data = _read(message) if message.path else np.asarray(tensors["safetensors"]).tobytes()
        assert fingerprint(data) == message.fingerprint
        assert bool(message.path) != bool(tensors)
        self.in_memory.append(bool(message.path))
        self.outbound.setdefault(peer, []).append((message.policy, message.policy_version, message.resident))
        if peer not in self.stopped:
            self.acknowledge(peer, message.policy, message.policy_version, bool(message.path) and peer in self.blind)
        return "sent"

    def hello(
        self, peer: bytes, served: int = -1, spec: str = SPEC, *, shared_memory: bool = False, token: str = TOKEN
    ) -> None:
        hello = ServerHello(
            protocol=PROTOCOL, spec_fingerprint=spec, served_version=served, shared_memory=shared_memory, token=token,
            connection=f"of {peer.decode()}",
        )  # fmt: skip
        self.inbound.append((peer, encode(hello)))

    def acknowledge(self, peer: bytes, policy: str, version: int, unreadable: bool = False) -> None:
        reason = "gone" * unreadable
        ack = WeightsAck(
            policy=policy, policy_version=version, accepted=not unreadable, reason=reason, unreadable=unreadable
        )
        self.inbound.append((peer, encode(ack)))


def _read(message: Weights) -> bytes:
    file = open_sealed(message.path, message.file_number)
    try:
        return os.pread(file, 1000, 0)
    finally:
        os.close(file)


@pytest.fixture
def socket() -> FakeSocket:
    return FakeSocket()


@pytest.fixture
def handshake() -> ServerHandshake:
    return ServerHandshake(TOKEN, SPEC, version=5)


@pytest.fixture
def publisher(socket, handshake) -> WeightPublisher:
    box = WeightPublisher(socket, handshake)
    box.set_weights("learner", 5, b"five", ("learner",))
    yield box
    box.close()


def settle(socket, publisher) -> None:
    """Both sides have read and answered everything."""
    publisher.receive_and_send()
    while socket.inbound:
        publisher.receive_and_send()


def greet(socket, publisher, peer: bytes, **hello) -> None:
    socket.hello(peer, **hello)
    settle(socket, publisher)


def publish(socket, publisher, version: int) -> None:
    publisher.set_weights("learner", version, b"newer", ("learner",))
    settle(socket, publisher)


def sent(socket, peer=b"a"):
    return [(policy, version) for policy, version, _ in socket.outbound.pop(peer, [])]


def test_each_server_gets_each_policy_once_and_all_again_after_hello(socket, publisher):
    greet(socket, publisher, b"a")
    settle(socket, publisher)
    assert sent(socket) == [("learner", 5)]
    publisher.set_weights("past/5", 5, b"five", ("learner", "past/5"))
    publisher.set_weights("learner", 6, b"six", ("learner", "past/5"))
    settle(socket, publisher)
    assert sorted(sent(socket)) == [("learner", 6), ("past/5", 5)]
    greet(socket, publisher, b"b")
    assert sorted(sent(socket, b"b")) == [("learner", 6), ("past/5", 5)]
    assert not sent(socket)


def test_a_policy_that_is_no_longer_resident_is_forgotten(socket, publisher):
    publisher.set_weights("past/5", 5, b"five", ("learner", "past/5"))
    publisher.set_weights("learner", 6, b"six", ("learner",))
    assert not publisher.has_policy("past/5")
    greet(socket, publisher, b"a")
    assert sent(socket) == [("learner", 6)]


@pytest.mark.parametrize("served", [5, 40])
def test_weights_wait_until_they_are_newer_than_what_a_former_life_served(socket, publisher, served):
    greet(socket, publisher, b"a", served=served)
    assert publisher.foreign_version == served
    assert not sent(socket)
    publish(socket, publisher, served + 1)
    assert sent(socket) == [("learner", served + 1)]


def test_a_server_that_reconnects_with_our_own_version_is_no_foreigner(socket, publisher):
    greet(socket, publisher, b"a")
    sent(socket)
    greet(socket, publisher, b"b", served=5)
    assert publisher.foreign_version == -1
    assert not sent(socket, b"b"), "it has these weights already"


def test_a_server_that_does_not_read_gets_what_is_newest_once_it_does(socket, publisher):
    socket.hello(b"a")
    socket.full.add(b"a")
    settle(socket, publisher)
    publish(socket, publisher, 6)
    assert not sent(socket)
    socket.full.clear()
    settle(socket, publisher)
    assert sent(socket) == [("learner", 6)]


@pytest.mark.parametrize(
    ("blocked", "accepted", "lag"), [("stopped", True, 14), ("stopped", False, 13), ("full", False, 13)]
)
def test_the_lag_is_that_of_the_server_with_the_oldest_weights_or_the_first_that_it_was_to_have(
    socket, publisher, blocked, accepted, lag
):
    greet(socket, publisher, b"a")
    if accepted:
        greet(socket, publisher, b"b")
    getattr(socket, blocked).add(b"b")
    if not accepted:
        socket.hello(b"b")
    assert publisher.version_lag == 0
    for version in range(6, 20):
        publish(socket, publisher, version)
    assert publisher.version_lag == lag
    socket.acknowledge(b"b", "learner", 6)
    getattr(socket, blocked).clear()
    settle(socket, publisher)
    assert publisher.version_lag == 0


def test_a_lost_server_one_of_another_game_a_refusal_and_garbage(socket, publisher, handshake):
    socket.gone.add(b"a")
    socket.hello(b"a")
    for _ in range(3):  # it says hello every second
        socket.hello(b"other", spec="1" * 16)
    socket.inbound.append((b"a", [b"\xc1"]))
    refusal = WeightsAck(policy="learner", policy_version=5, accepted=False, reason="torn")
    socket.inbound.append((b"a", encode(refusal)))
    settle(socket, publisher)
    socket.gone.clear()
    settle(socket, publisher)
    assert not socket.outbound
    assert [event.split(":")[0].split(".")[0] for event in (*handshake.events, *publisher.events)] == [
        "A server has the spec fingerprint 1111111111111111; the learner has 0000000000000000",
        "A server sent what cannot be read on the weights socket",
        "A server refused version 5 of learner",
    ]
    assert not handshake.untrusted


@pytest.mark.parametrize("token", ["", "another run's", TOKEN[:-1], TOKEN + "0"])
def test_a_peer_without_the_runs_token_gets_nothing_and_changes_nothing(socket, publisher, handshake, token):
    socket.hello(b"stranger", served=40, token=token)
    refusal = WeightsAck(policy="learner", policy_version=5, accepted=False, reason="torn")
    for frames in (encode(refusal), [b"\xc1"]):
        socket.inbound.append((b"stranger", frames))
    settle(socket, publisher)
    assert not socket.outbound
    assert publisher.foreign_version == -1
    assert not publisher.events
    assert handshake.untrusted == {"SERVER_HELLO": 1, "WEIGHTS_ACK": 1, "unreadable": 1}
    assert all("has not shown the run's token" in event for event in handshake.events)
    greet(socket, publisher, b"stranger")
    assert sent(socket, b"stranger") == [("learner", 5)]
    greet(socket, publisher, b"stranger", token=token)
    publish(socket, publisher, 6)
    assert not socket.outbound, "whoever shows another token later is a stranger again"


def test_a_run_without_a_token_trusts_nobody(socket):
    handshake = ServerHandshake("", SPEC)
    assert not handshake.admit(b"a", ServerHello(protocol=PROTOCOL, spec_fingerprint=SPEC))
    assert not handshake.met_server


@pytest.mark.parametrize("served", [9223372036854775800, 10**9, 5 + MOST_UNNOTED + 1, -2])
def test_a_version_that_no_learner_can_have_published_is_not_believed(socket, publisher, handshake, served):
    greet(socket, publisher, b"a", served=served)
    assert publisher.foreign_version == -1
    assert not socket.outbound
    assert f"served version {served}, which no learner of this run can have published" in handshake.events[0]


linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is shared on Linux only")


@linux
def test_weights_lie_in_memory_for_whoever_can_reach_it_only(socket, publisher):
    greet(socket, publisher, b"a", shared_memory=True)
    greet(socket, publisher, b"b")
    socket.endpoint = "tcp://10.0.0.1:5"
    greet(socket, publisher, b"c", shared_memory=True)
    assert socket.in_memory == [True, False, False]
    greet(socket, publisher, b"a")  # in another life it does without
    assert socket.in_memory[3:] == [False]


@linux
def test_a_server_that_cannot_read_gets_the_bytes_of_these_and_all_other_weights(socket, publisher):
    publisher.set_weights("past/5", 5, b"five", ("learner", "past/5"))
    socket.blind.add(b"a")
    greet(socket, publisher, b"a", shared_memory=True)
    assert sent(socket) == [("learner", 5), ("learner", 5), ("past/5", 5)]
    publisher.set_weights("learner", 6, b"six", ("learner", "past/5"))
    settle(socket, publisher)
    assert sent(socket) == [("learner", 6)]
    assert socket.in_memory == [True] + [False] * 3
    assert not publisher.events
    greet(socket, publisher, b"a", served=6, shared_memory=True)  # it is asked again after every hello
    assert sent(socket) == [("past/5", 5), ("past/5", 5)]
    assert socket.in_memory[4:] == [True, False]


@linux
def test_a_server_that_owes_an_answer_costs_one_version_which_it_can_read_for_as_long(socket, publisher):
    gc.collect()
    before = anonymous_files()
    socket.stopped.add(b"stopped")
    for peer in (b"stopped", b"a"):
        socket.hello(peer, shared_memory=True)
    for version in range(6, 56):
        publish(socket, publisher, version)
    assert sent(socket, b"stopped") == [("learner", 6)]
    assert sent(socket)[-1] == ("learner", 55)
    assert anonymous_files() == before + 2, "what the stopped one was told of, and what is newest"
    socket.acknowledge(b"stopped", "learner", 5)  # it was never sent
    socket.acknowledge(b"stranger", "learner", 6)
    settle(socket, publisher)
    assert not sent(socket, b"stopped")
    socket.acknowledge(b"stopped", "learner", 6)
    settle(socket, publisher)
    assert sent(socket, b"stopped") == [("learner", 55)], "none between"
    assert anonymous_files() == before + 1


@linux
@pytest.mark.parametrize("how", ["hello", "lost"])
def test_what_a_lost_connection_owed_is_released(socket, publisher, how):
    gc.collect()
    before = anonymous_files()
    socket.stopped.add(b"a")
    greet(socket, publisher, b"a", shared_memory=True)
    publisher.set_weights("learner", 6, b"six", ("learner",))
    assert anonymous_files() == before + 1
    publisher.forget_connections({"", "of b"})
    assert anonymous_files() == before + 1
    if how == "lost":
        publisher.forget_connections({"of a"})
    else:
        socket.hello(b"a", served=6)
        settle(socket, publisher)
    assert anonymous_files() == before
    assert sent(socket) == [("learner", 5)]


def test_a_connection_that_the_unroll_socket_has_lost_gets_no_weights_when_it_greets_again(socket, publisher):
    socket.stopped.add(b"a")
    publisher.forget_connections(["", "of a"])
    for peer in (b"a", b"b"):
        socket.hello(peer, served=4)
    publish(socket, publisher, 6)
    assert not sent(socket, b"a")
    assert sent(socket, b"b") == [("learner", 6)]
    assert publisher.version_lag == 0, "it would never acknowledge, and its lag would grow"


def test_a_policy_whose_versions_come_fast_does_not_keep_others_waiting(socket, publisher):
    socket.stopped.add(b"a")
    greet(socket, publisher, b"a")
    resident = ("learner", "past/5", "past/6")
    for name in resident[1:]:
        publisher.set_weights(name, int(name[-1]), b"past", resident)
    order = sent(socket)
    for version in (6, 7, 8):
        publisher.set_weights("learner", version, b"newer", resident)
        socket.acknowledge(b"a", *order[-1])
        settle(socket, publisher)
        order += sent(socket)
    assert order == [("learner", 5), ("past/5", 5), ("past/6", 6), ("learner", 8)]


@linux
def test_memory_goes_with_the_weights_that_lie_in_it(socket, publisher):
    gc.collect()  # files that other tests have let go
    before = anonymous_files()
    for peer in (b"a", b"b"):
        socket.hello(peer, shared_memory=True)
    for version in range(6, 56):
        past = f"past/{version // 10}"
        publisher.set_weights(past, version, b"past", ("learner", past))
        publisher.set_weights("learner", version, b"newer", ("learner", past))
        settle(socket, publisher)
        assert anonymous_files() == before + 2
    publisher.close()
    assert anonymous_files() == before
    assert all(socket.in_memory)


@linux
def test_where_the_system_has_no_memory_the_bytes_are_sent(socket, publisher, monkeypatch):
    def none(*_, **__):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("simul.learner.io.weight_publisher.anonymous_file", none)
    greet(socket, publisher, b"a", shared_memory=True)
    assert sent(socket) == [("learner", 5)]
    assert socket.in_memory == [False]
