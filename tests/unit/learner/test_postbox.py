import numpy as np
import pytest

from common.codec import Codec, encode
from common.messages import FROM_LEARNER, PROTOCOL, ServerHello, Weights, WeightsAck
from common.nets.weights import fingerprint
from learner.postbox import Postbox

SPEC = "0" * 16


class FakeSocket:
    """A router whose peers read what they like."""

    def __init__(self) -> None:
        self.inbound: list[tuple[bytes, list[bytes]]] = []
        self.outbound: dict[bytes, list[tuple[str, int, tuple[str, ...]]]] = {}
        self.gone: set[bytes] = set()
        self.codec = Codec[Weights](FROM_LEARNER)

    def receive(self):
        return self.inbound.pop(0) if self.inbound else None

    def send(self, peer, frames) -> bool:
        if peer in self.gone:
            return False
        message, tensors = self.codec.decode(frames)
        assert fingerprint(np.asarray(tensors["safetensors"]).tobytes()) == message.fingerprint
        self.outbound.setdefault(peer, []).append((message.policy, message.policy_version, message.resident))
        return True

    def hello(self, peer: bytes, served: int = -1, spec: str = SPEC) -> None:
        self.inbound.append(
            (peer, encode(ServerHello(protocol=PROTOCOL, spec_fingerprint=spec, served_version=served)))
        )


@pytest.fixture
def socket() -> FakeSocket:
    return FakeSocket()


@pytest.fixture
def postbox(socket) -> Postbox:
    box = Postbox(socket, SPEC)
    box.post("learner", 5, b"five", ("learner",))
    return box


def sent(socket, peer=b"a"):
    return [(policy, version) for policy, version, _ in socket.outbound.pop(peer, [])]


def test_each_server_gets_each_policy_once_and_all_again_after_hello(socket, postbox):
    socket.hello(b"a")
    postbox.exchange()
    postbox.exchange()
    assert sent(socket) == [("learner", 5)]
    postbox.post("past/5", 5, b"five", ("learner", "past/5"))
    postbox.post("learner", 6, b"six", ("learner", "past/5"))
    postbox.exchange()
    assert sorted(sent(socket)) == [("learner", 6), ("past/5", 5)]
    socket.hello(b"b")
    postbox.exchange()
    assert sorted(sent(socket, b"b")) == [("learner", 6), ("past/5", 5)]
    assert not sent(socket)


def test_a_policy_that_is_no_longer_resident_is_forgotten(socket, postbox):
    postbox.post("past/5", 5, b"five", ("learner", "past/5"))
    postbox.post("learner", 6, b"six", ("learner",))
    assert not postbox.has("past/5")
    socket.hello(b"a")
    postbox.exchange()
    assert sent(socket) == [("learner", 6)]


@pytest.mark.parametrize("served", [5, 40])
def test_weights_wait_until_they_are_newer_than_what_a_former_life_served(socket, postbox, served):
    socket.hello(b"a", served=served)
    postbox.exchange()
    assert postbox.foreign_version == served
    assert not sent(socket)
    postbox.post("learner", served + 1, b"more", ("learner",))
    postbox.exchange()
    assert sent(socket) == [("learner", served + 1)]


def test_a_server_that_reconnects_with_our_own_version_is_no_foreigner(socket, postbox):
    socket.hello(b"a")
    postbox.exchange()
    sent(socket)
    socket.hello(b"b", served=5)
    postbox.exchange()
    assert postbox.foreign_version == -1
    assert not sent(socket, b"b"), "it has these weights already"


def test_a_lost_server_a_stranger_a_refusal_and_garbage(socket, postbox):
    socket.gone.add(b"a")
    socket.hello(b"a")
    socket.hello(b"stranger", spec="1" * 16)
    socket.inbound.append((b"c", [b"\xc1"]))
    refusal = WeightsAck(policy="learner", policy_version=5, accepted=False, reason="torn")
    socket.inbound.append((b"c", encode(refusal)))
    postbox.exchange()
    socket.gone.clear()
    postbox.exchange()
    assert not socket.outbound
    assert [event.split(":")[0].split(".")[0] for event in postbox.events] == [
        "A server has the spec fingerprint 1111111111111111; the learner has 0000000000000000",
        "A server sent what cannot be read on the weights socket",
        "A server refused version 5 of learner",
    ]
