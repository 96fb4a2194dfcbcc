"""Answers that come twice, to messages that were sent again, refuse nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simul.common.client.client import SILENT_AFTER_SEC, InferenceClient
from simul.common.errors import ERR_BUSY, ERR_VERSION, InferenceError
from simul.common.protocol.codec import Codec, encode
from simul.common.protocol.messages import PROTOCOL, TO_SERVER, Error, Evaluate, Evaluated, Hello, Message, Welcome
from simul.common.protocol.specs import GameSpec
from simul.common.transport import Poller, RouterSocket

SPEC = GameSpec("test", observation_size=2, num_actions=3)


class Server:
    """Says what the test tells it to, to the last one that asked."""

    def __init__(self, endpoint: str) -> None:
        self.socket = RouterSocket(endpoint)
        self._poller = Poller([self.socket])
        self._codec: Codec[TO_SERVER] = Codec(TO_SERVER)
        self._peer = b""

    def receive(self) -> Message:
        while (received := self.socket.receive()) is None:
            self._poller.wait(0.05)
        self._peer, frames = received
        return self._codec.decode(frames)[0]

    def receive_until(self, kind: type) -> Message:
        while not isinstance(message := self.receive(), kind):
            pass
        return message

    def say(self, message: Message, tensors=None) -> None:
        self.socket.deliver(self._peer, encode(message, tensors))

    def welcome(self, *, resumed: bool) -> None:
        self.say(
            Welcome(
                protocol=PROTOCOL, token="t", resumed=resumed, game=SPEC.name, observation_size=2, num_actions=3,
                observation_dtype="float32", policies=("learner",), limits={"rows_per_step": 8},
            )
        )  # fmt: skip


def answered(client: InferenceClient, server: Server) -> int:
    """Ask for an evaluation and have it; the number of the message."""
    client.evaluate(np.zeros((1, 2), np.float32), np.ones((1, 3), np.uint8))
    message = server.receive_until(Evaluate)
    tensors = {
        "row": np.zeros(1, np.int32), "value": np.zeros(1, np.float32), "priors": np.full(3, 1 / 3, np.float32),
    }  # fmt: skip
    server.say(Evaluated(id=message.id, policy_version=1), tensors)
    while not client.poll().evaluations:
        client.poller.wait(0.05)
    return message.id


def _poll_on(client: InferenceClient, now: list[float]) -> None:
    for _ in range(100):
        client.poll()
        client.poller.wait(0.05)
        now[0] += 1.0


def test_a_late_refusal_of_a_message_that_was_answered_is_no_refusal_of_the_client(tmp_path: Path) -> None:
    now = [0.0]
    server = Server(f"ipc://{tmp_path}/socket")
    client = InferenceClient(f"ipc://{tmp_path}/socket", name="a", spec=SPEC, clock=lambda: now[0])
    try:
        client.poll()
        assert isinstance(server.receive(), Hello)
        server.welcome(resumed=False)
        client.connect()
        number = answered(client, server)
        server.say(Error(code=ERR_BUSY, message="240 rows on top of 8175", id=number, retry_after_ms=10))
        client.poller.wait(1.0)
        for _ in range(3):  # then it is silent, and taken to be gone
            client.poll()
            now[0] += SILENT_AFTER_SEC - 0.5
        assert not client.connected
        client.poll()
        server.receive_until(Hello)
        server.welcome(resumed=True)
        client.connect()
        answered(client, server)
        now[0] += 2 * SILENT_AFTER_SEC
        client.poll()
        server.say(Error(code=ERR_VERSION, message="this server speaks simul/2"))
        with pytest.raises(InferenceError, match="accepted this client before and refuses it now"):
            _poll_on(client, now)
    finally:
        client.close()
        server.socket.close()
