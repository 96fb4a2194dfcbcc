"""The data socket: decodes messages, finds their client, and sends replies."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import ERR_HELLO, ERR_INTERNAL, ProtocolError
from simul.common.protocol.codec import Codec, Tensors, encode, expect_only
from simul.common.protocol.messages import (
    TO_SERVER,
    Actions,
    Close,
    Error,
    Evaluate,
    Hello,
    Message,
    Ping,
    Pong,
    Samples,
    StatusRequest,
    Step,
)
from simul.common.transport import RouterSocket
from simul.inference_server.base.faults import FAULT_TEXT, record_fault
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.frontend.handshake import Handshake, SpecQuery
from simul.inference_server.frontend.status_reply import StatusReply
from simul.inference_server.policies.table import PolicyTable
from simul.inference_server.proxy.process import ProxyProcess
from simul.inference_server.sessions.clients import Client, ClientTable
from simul.inference_server.sessions.table import Reply

RECEIVE_SEC = 0.005
COUNT_EVERY_SEC = 0.05
_NO_TENSORS: frozenset[str] = frozenset()


class ClientSocket:
    """Receives requests and sends replies. A bad message is answered and counted; it never stops the server."""

    def __init__(
        self,
        socket: RouterSocket,
        handshake: Handshake,
        clients: ClientTable,
        policies: PolicyTable,
        statistics: Statistics,
        limits: dict[str, int],
        figures: StatusReply,
        proxy: ProxyProcess | None = None,
    ) -> None:
        self.socket = socket
        self.proxy = proxy
        self.read_all = True  # the last `receive` left nothing behind
        self.departed: list[tuple[Client, str]] = []  # clients whose sessions must end, with the cause
        self._handshake = handshake
        self._clients = clients
        self._policies = policies
        self._statistics = statistics
        self._codec: Codec[TO_SERVER] = Codec(TO_SERVER, limits["message_bytes"])
        self._limits = limits
        self._figures = figures
        self._count_at = 0.0

    def receive(self, now: float, most: int = 1000) -> Iterator[tuple[Client, Step | Evaluate | Samples, Tensors]]:
        """Yields the STEP, EVALUATE and SAMPLES messages that wait; other messages are answered here.

        It ends after `most` messages or `RECEIVE_SEC`: a client that floods must not delay the batch of
        rows already read (the socket reads its peers in turns).
        """
        enough = time.perf_counter() + RECEIVE_SEC
        self.read_all = False
        for _ in range(most):
            received = self.socket.receive()
            if received is None:
                self.read_all = True
                return
            peer, frames = received
            try:
                message, tensors = self._codec.decode(frames)
                client = self._clients.of_peer(peer)
                if isinstance(message, Hello):
                    expect_only(tensors, _NO_TENSORS)
                    welcome, ended = self._handshake.accept(peer, message, now)
                    self.departed.extend((older, "new_run") for older in ended)
                    self.send(peer, welcome)
                elif client is None:
                    raise ProtocolError(ERR_HELLO, "this connection is not known; say HELLO first")
                else:
                    client.heard_at, client.confirmed = now, True
                    if isinstance(message, Step | Evaluate | Samples):
                        yield client, message, tensors
                    else:
                        expect_only(tensors, _NO_TENSORS)
                        self._answer_other(client, message)
            except ProtocolError as error:
                if not isinstance(error, SpecQuery):
                    self._statistics.messages_refused[error.code] += 1
                self.send(peer, Error(code=error.code, message=str(error)))
            except Exception as error:  # noqa: BLE001 a defect costs this message, not the loop
                record_fault(error, self._statistics)
                self._statistics.messages_refused[ERR_INTERNAL] += 1
                self.send(peer, Error(code=ERR_INTERNAL, message=FAULT_TEXT))
            if time.perf_counter() > enough:
                return

    def count_connections(self, now: float) -> str:
        """Count connection events if due. Returns a sentence if the proxy has died."""
        if now < self._count_at:
            return ""
        self._count_at = now + COUNT_EVERY_SEC
        if self.socket.connections is not None:
            self._statistics.connections.update(self.socket.connections.drain())
        return "" if self.proxy is None else self._poll_proxy(self.proxy, now)

    def _poll_proxy(self, proxy: ProxyProcess, now: float) -> str:
        sentence, statistics = proxy.poll(now), self._statistics
        statistics.connections.update(+proxy.new_connections)
        proxy.new_connections.clear()
        statistics.connections_cut, statistics.proxy_restarts = proxy.cut, proxy.restarts
        statistics.unanswered_bytes = proxy.unanswered_bytes
        return sentence

    def close(self) -> None:
        """Close the socket; queued replies are sent for a moment at most."""
        self.socket.close()
        if self.proxy is not None:
            self.proxy.close()

    def send(self, peer: bytes, message: Message, tensors: Tensors | None = None) -> None:
        """Answer without waiting; a peer that is gone or does not read loses its reply, and may ask again."""
        if self._deliver(peer, message, tensors) != "sent":
            self._statistics.replies_dropped += 1

    def send_to(self, client: Client, message: Message, tensors: Tensors | None = None) -> None:
        """Answer a client. One that never reads loses its replies, after `slow_reader_replies` of them its sessions."""
        outcome = self._deliver(client.peer, message, tensors)
        if outcome == "sent":
            client.replies_lost = 0
            return
        self._statistics.replies_dropped += 1
        client.replies_lost += outcome == "full"
        if client.replies_lost == self._limits["slow_reader_replies"]:
            self._clients.forget(client)
            self.departed.append((client, "slow_reader"))

    def _deliver(self, peer: bytes, message: Message, tensors: Tensors | None) -> str:
        """Never raises: an answer that cannot be sent is lost, as one to a peer that is gone."""
        try:
            return self.socket.deliver(peer, encode(message, tensors))
        except Exception as error:  # noqa: BLE001
            record_fault(error, self._statistics)
            return "failed"

    def _answer_other(self, client: Client, message: Ping | StatusRequest | Close) -> None:
        if isinstance(message, Ping):
            names, ready = self._policies.names, self._figures.ready
            progress = self._policies.progress if client.training else 0.0
            self.send_to(client, Pong(id=message.id, policies=names, ready=ready, progress=progress))
        elif isinstance(message, StatusRequest):
            self.send_to(client, self._figures(client, message.id))
        else:
            self._clients.forget(client)
            self.departed.append((client, "closed"))

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
        """Answer rows of the STEP message number `message`; arrays [M], see `messages.Actions`."""
        tensors: dict[str, NDArray[Any]] = {
            "row": rows.astype(np.int32),
            "action": action,
            "log_prob": log_prob,
            "value": value,
            "policy_version": version,
        }
        self.send_to(client, Actions(id=message), tensors)

    def reply_again(self, client: Client, message: int, replies: Sequence[tuple[int, Reply]]) -> None:
        """Answer rows whose replies are known: (row, reply)."""
        rows = np.array([row for row, _ in replies])
        action, log_prob, value, version = zip(*(reply for _, reply in replies))
        self.reply(
            client, message, rows, np.array(action, np.int32), np.array(log_prob, np.float32),
            np.array(value, np.float32), np.array(version, np.int64),
        )  # fmt: skip

    def refuse(
        self, client: Client, message: int, rows: Iterable[int], code: str, text: str, *, retry_after_ms: int = 0
    ) -> None:
        """Answer rows of the STEP, EVALUATE or SAMPLES message number `message` with an error."""
        error = Error(code=code, message=text, id=message, rows=tuple(rows), retry_after_ms=retry_after_ms)
        self.send_to(client, error)
