"""A client's line to the inference socket: says HELLO, pings, says goodbye. What is said on it is the client's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Container

import msgspec

from simul.common.client.observation_memory import Block, ObservationMemory, open_memory
from simul.common.protocol.codec import Codec, Tensors, encode
from simul.common.protocol.errors import InferenceError
from simul.common.protocol.messages import PROTOCOL, TO_CLIENT, Close, Error, Hello, Message, Ping, Welcome
from simul.common.protocol.specs import GameSpec
from simul.common.transport import ClientKeys, DealerSocket, Poller

PING_EVERY_SEC = 1.0
HELLO_EVERY_SEC = 0.5


class ServerLine:
    """Not thread-safe. `welcomed` is the client's to take back: it reads the answers.

    `memory`: shared with the server, None where observations go through the socket.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        name: str,
        spec: GameSpec,
        run_id: int = 0,
        training_token: str = "",
        keys: ClientKeys | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.hello = Hello(
            protocol=PROTOCOL,
            client=name,
            run_id=run_id or time.time_ns(),
            spec_fingerprint=spec.fingerprint(),
            training_token=training_token,
            shared_memory=True,
        )
        self.memory: ObservationMemory | None = None
        self.welcomed = False
        self.said_at = -1e9
        self._spec = spec
        self._clock = clock
        self._socket = DealerSocket(endpoint, keys=keys)
        self.poller = Poller([self._socket])
        self._codec: Codec[TO_CLIENT] = Codec(TO_CLIENT)

    def connect(self, poll: Callable[[], Error | None], timeout_sec: float) -> None:
        """Call `poll`, which takes in what arrives and tells of a refusal, until the server has welcomed us.

        Raises:
            InferenceError: the server refused, or did not answer within `timeout_sec`.
        """
        deadline = self._clock() + timeout_sec
        while True:
            refusal = poll()
            if refusal is not None:
                raise InferenceError(refusal.code, refusal.message)
            if self.welcomed:
                return
            if self._clock() > deadline:
                raise InferenceError("ERR_TIMEOUT", f"no answer from {self._socket.endpoint} in {timeout_sec:g} s")
            self.poller.wait(0.05)

    def on_welcome(self, message: Welcome) -> None:
        """We are let in. A server that knew us goes on with the memory we have."""
        self.welcomed = True
        self.hello = msgspec.structs.replace(self.hello, token=message.token)
        if self.memory is None or self.memory.grant != message.shared_memory:
            self.memory = open_memory(message.shared_memory)

    def block(self, number: int, rows: int, owed: Container[int]) -> Block | None:
        """Shared memory for the observations of STEP message `number`; `owed`: messages not answered yet."""
        return None if self.memory is None else self.memory.block(number, rows, self._spec, owed)

    def receive(self) -> tuple[TO_CLIENT, Tensors] | None:
        """The next message with its tensors, or None when nothing waits."""
        frames = self._socket.receive()
        return None if frames is None else self._codec.decode(frames)

    def send(self, message: Message, tensors: Tensors | None = None) -> bool:
        """Send without waiting. False when the server does not read: the message is dropped."""
        return self._socket.send(encode(message, tensors))

    def say(self, message: Message) -> None:
        """Send what counts as a sign of life."""
        self.said_at = self._clock()
        self.send(message)

    def keep_alive(self, now: float) -> bool:
        """HELLO until we are welcomed, then PING, where it is time. True when it pinged."""
        pings = self.welcomed
        if now - self.said_at < (PING_EVERY_SEC if pings else HELLO_EVERY_SEC):
            return False
        self.say(Ping() if pings else self.hello)
        return pings

    def close(self) -> None:
        """Say goodbye: the server frees this client's sessions."""
        if self.welcomed:
            self.say(Close())
            self.welcomed = False
        self._socket.close()
