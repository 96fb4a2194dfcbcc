"""The data socket: decodes what comes, knows who it is from, and answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.codec import Codec, Tensors, encode
from common.errors import (
    ERR_HELLO,
    ERR_SPEC,
    ERR_STALE_RUN,
    ERR_VERSION,
    ProtocolError,
    StaleRunError,
)
from common.messages import (
    PROTOCOL,
    TO_SERVER,
    Actions,
    Close,
    Error,
    Hello,
    Message,
    Ping,
    Pong,
    Step,
    Welcome,
)
from common.specs import GameSpec
from common.transport import RouterSocket
from inference_server.clients import Client, ClientTable
from inference_server.policies import PolicyTable
from inference_server.rows import MAX_ROWS
from inference_server.session import Reply
from inference_server.statistics import Statistics


class Gateway:
    """Clients come and go here. A bad message is answered and counted; it never stops the server."""

    def __init__(
        self,
        socket: RouterSocket,
        spec: GameSpec,
        clients: ClientTable,
        policies: PolicyTable,
        statistics: Statistics,
        max_sessions: int,
    ) -> None:
        self.socket = socket
        self.departed: list[tuple[Client, str]] = []  # clients whose sessions must end, with the cause
        self._spec = spec
        self._clients = clients
        self._policies = policies
        self._statistics = statistics
        self._codec: Codec[TO_SERVER] = Codec(TO_SERVER)
        self._limits = {"rows_per_step": MAX_ROWS, "sessions": max_sessions}

    def receive(self, now: float, most: int = 1000) -> Iterator[tuple[Client, Step, Tensors]]:
        """STEP messages that wait, at most `most`; everything else is dealt with here."""
        for _ in range(most):
            received = self.socket.receive()
            if received is None:
                return
            peer, frames = received
            try:
                message, tensors = self._codec.decode(frames)
                client = self._clients.of_peer(peer)
                if isinstance(message, Hello):
                    self._welcome(peer, message, now)
                elif client is None:
                    raise ProtocolError(ERR_HELLO, "this connection is not known; say HELLO first")
                elif isinstance(message, Step):
                    client.heard_at = now
                    yield client, message, tensors
                elif isinstance(message, Ping):
                    client.heard_at = now
                    self.send(peer, Pong(id=message.id, policies=self._policies.names))
                elif isinstance(message, Close):
                    self._clients.forget(client)
                    self.departed.append((client, "closed"))
            except ProtocolError as error:
                self._statistics.malformed += 1
                self.send(peer, Error(code=error.code, message=str(error)))

    def send(self, peer: bytes, message: Message, tensors: Tensors | None = None) -> None:
        """Answer without waiting; a client that is gone or does not read loses its reply, and may ask again."""
        if not self.socket.send(peer, encode(message, tensors)):
            self._statistics.replies_dropped += 1

    def reply(
        self,
        client: Client,
        message: int,
        rows: NDArray[np.int64],
        action: NDArray[np.int32],
        log_prob: NDArray[np.float32],
        value: NDArray[np.float32],
        version: NDArray[np.int64],
    ) -> None:
        """Answer rows of the STEP message number `message`; arrays [M], see `common.messages.Actions`."""
        tensors: dict[str, NDArray[Any]] = {
            "row": rows.astype(np.int32),
            "action": action,
            "log_prob": log_prob,
            "value": value,
            "policy_version": version,
        }
        self.send(client.peer, Actions(id=message), tensors)

    def reply_again(self, client: Client, message: int, replies: Sequence[tuple[int, Reply]]) -> None:
        """Answer rows whose replies are known: (row, reply)."""
        rows = np.array([row for row, _ in replies])
        action, log_prob, value, version = zip(*(reply for _, reply in replies))
        self.reply(
            client, message, rows, np.array(action, np.int32), np.array(log_prob, np.float32),
            np.array(value, np.float32), np.array(version, np.int64),
        )  # fmt: skip

    def refuse(self, client: Client, message: int, rows: Iterable[int], code: str, text: str) -> None:
        """Answer rows of the STEP message number `message` with an error."""
        self.send(client.peer, Error(code=code, message=text, id=message, rows=tuple(rows)))

    def _welcome(self, peer: bytes, hello: Hello, now: float) -> None:
        if hello.protocol != PROTOCOL:
            raise ProtocolError(ERR_VERSION, f"this server speaks {PROTOCOL}; got {hello.protocol!r}")
        fingerprint = self._spec.fingerprint()
        if hello.spec_fingerprint != fingerprint:
            raise ProtocolError(
                ERR_SPEC, f"this server plays {self._spec.name} with spec {fingerprint}; got {hello.spec_fingerprint!r}"
            )
        client = self._clients.same_life(peer, hello.client, hello.run_id)
        if client is None and hello.token:
            client = self._clients.resume(hello.token, peer, now)
        resumed = client is not None
        if client is None:
            try:
                client, ended = self._clients.open(hello.client, hello.run_id, hello.training_token, peer, now)
            except StaleRunError as error:
                raise ProtocolError(ERR_STALE_RUN, str(error)) from None
            self.departed.extend((older, "new_run") for older in ended)
        welcome = Welcome(
            protocol=PROTOCOL,
            token=client.token,
            resumed=resumed,
            game=self._spec.name,
            observation_size=self._spec.observation_size,
            num_actions=self._spec.num_actions,
            observation_dtype=self._spec.observation_dtype,
            policies=self._policies.names,
            limits=self._limits,
        )
        self.send(peer, welcome)
