"""A client's connection to the inference socket: HELLO, PING, CLOSE. The client decides what else is sent on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Container

import msgspec

from simul.common.client.observation_memory import ObservationBlock, ObservationMemory, open_observation_memory
from simul.common.errors import InferenceError
from simul.common.protocol.codec import Codec, Tensors, encode
from simul.common.protocol.messages import PROTOCOL, TO_CLIENT, Close, Error, Hello, Message, Ping, Welcome
from simul.common.protocol.specs import GameSpec
from simul.common.transport import ClientKeys, DealerSocket, Poller, explain_silence

PING_EVERY_SEC = 1.0
HELLO_EVERY_SEC = 0.5


class ServerConnection:
    """Not thread-safe.

    Attributes:
        welcomed: set by WELCOME; the client clears it where the server stops answering.
        memory: shared with the server; None where observations go through the socket.
        keepalive_at: time of the last keepalive message, in seconds of `clock`.
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
        self.keepalive_at = -1e9
        self._spec = spec
        self._clock = clock
        self._with_keys = keys is not None
        self._socket = DealerSocket(endpoint, keys=keys, watch=True)
        self.poller = Poller([self._socket])
        self._codec: Codec[TO_CLIENT] = Codec(TO_CLIENT)

    def connect(self, poll: Callable[[], Error | None], timeout_sec: float) -> None:
        """Call `poll`, which reads what arrived and returns a refusal or None, until WELCOME arrived.

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
                why = explain_silence(self._socket.connection_state(), with_keys=self._with_keys)
                raise InferenceError(
                    "ERR_TIMEOUT", f"no answer from {self._socket.endpoint} in {timeout_sec:g} s: {why}"
                )
            self.poller.wait(0.05)

    def on_welcome(self, message: Welcome) -> None:
        """Store the token; keep the memory where the server grants the same one again."""
        self.welcomed = True
        self._socket.stop_watching()
        self.hello = msgspec.structs.replace(self.hello, token=message.token)
        if self.memory is None or self.memory.grant != message.shared_memory:
            self.memory = open_observation_memory(message.shared_memory)

    def allocate_block(self, number: int, rows: int, owed: Container[int]) -> ObservationBlock | None:
        """Shared memory for the observations of STEP message `number`; `owed`: unanswered ones. None: no room."""
        return None if self.memory is None else self.memory.allocate(number, rows, self._spec, owed)

    def receive(self) -> tuple[TO_CLIENT, Tensors] | None:
        """The next message with its tensors, or None when nothing waits."""
        frames = self._socket.receive()
        return None if frames is None else self._codec.decode(frames)

    def send(self, message: Message, tensors: Tensors | None = None) -> bool:
        """Send without waiting. False when the server does not read: the message is dropped."""
        return self._socket.send(encode(message, tensors))

    def send_keepalive(self, message: Message) -> None:
        """Send a message that postpones the next PING or HELLO."""
        self.keepalive_at = self._clock()
        self.send(message)

    def keep_alive(self, now: float) -> bool:
        """Send HELLO until WELCOME arrived, then PING, where due. True when it sent PING."""
        pings = self.welcomed
        if now - self.keepalive_at < (PING_EVERY_SEC if pings else HELLO_EVERY_SEC):
            return False
        self.send_keepalive(Ping() if pings else self.hello)
        return pings

    def close(self) -> None:
        """Send CLOSE: the server frees this client's sessions."""
        if self.welcomed:
            self.send_keepalive(Close())
            self.welcomed = False
        self._socket.close()
