"""The inference client that workers and external agents share.

    client = InferenceClient(endpoint, name="my-bot", spec=spec)
    client.connect()
    client.submit([Decision(...), ...])      # everything that is ready, one message
    replies = client.poll()                  # never blocks; actions and failures as they come

It pings, resends what stays unanswered (the server answers a resend with the identical reply), and
reconnects with its token. Where the server forgot the sessions, `Replies.lost` says so, once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from common.codec import Codec, expect
from common.codec import encode as encode_message
from common.decisions import Action, Decision, Failure
from common.errors import ERR_HELLO, InferenceError
from common.messages import PROTOCOL, TO_CLIENT, Actions, Close, Error, Hello, Message, Ping, Pong, Step, Welcome
from common.specs import GameSpec
from common.transport import ClientKeys, DealerSocket, Poller

PING_EVERY_SEC = 1.0
SILENT_AFTER_SEC = 3.0  # the server is taken for gone, HELLO is said again
HELLO_EVERY_SEC = 0.5
RESEND_AFTER_SEC = 5.0


class Replies(msgspec.Struct):
    """What came since the last poll. `lost`: the server forgot every session of this client."""

    actions: list[Action]
    failures: list[Failure]
    lost: bool = False


class _Ticket(msgspec.Struct):
    """One row that the server owes; every message that carries the row, a resend too, refers to the same ticket."""

    decision: Decision
    open: bool = True


class _Outstanding(msgspec.Struct):
    tickets: list[_Ticket]
    sent_at: float


class InferenceClient:
    """One client's life at the inference socket. Not thread-safe; never blocks after `connect`.

    `keys` (see `common.transport.client_keys`) are needed where the server has CURVE keys.
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
        self.policies: tuple[str, ...] = ()
        self.resent = 0
        self.answered = 0
        self._hello = Hello(
            protocol=PROTOCOL,
            client=name,
            run_id=run_id or time.time_ns(),
            spec_fingerprint=spec.fingerprint(),
            training_token=training_token,
        )
        self._spec = spec
        self._clock = clock
        self._socket = DealerSocket(endpoint, keys=keys)
        self.poller = Poller([self._socket])
        self._codec: Codec[TO_CLIENT] = Codec(TO_CLIENT)
        self._welcomed = False
        self._max_rows = 1
        self._refusal: Error | None = None
        self._outstanding: dict[int, _Outstanding] = {}
        self._next_id = self._waiting = 0
        self._heard_at = self._said_at = -1e9

    @property
    def connected(self) -> bool:
        """True between WELCOME and the moment the server falls silent."""
        return self._welcomed

    @property
    def waiting(self) -> int:
        """Rows that the server still owes."""
        return self._waiting

    def connect(self, timeout_sec: float = 10.0) -> None:
        """Say HELLO and wait for WELCOME.

        Raises:
            InferenceError: the server refused, or did not answer within `timeout_sec`.
        """
        deadline = self._clock() + timeout_sec
        while not self._welcomed:
            self.poll()
            if self._refusal is not None:
                raise InferenceError(self._refusal.code, self._refusal.message)
            if self._clock() > deadline:
                raise InferenceError("ERR_TIMEOUT", f"no answer from {self._socket.endpoint} in {timeout_sec:g} s")
            self.poller.wait(0.05)

    def submit(self, decisions: Sequence[Decision]) -> None:
        """Send decisions and ends, in one message where the server's limit allows."""
        for start in range(0, len(decisions), self._max_rows):
            tickets = [_Ticket(decision) for decision in decisions[start : start + self._max_rows]]
            self._waiting += len(tickets)
            self._track_and_send(tickets)

    def poll(self) -> Replies:
        """Take in what arrived; ping, resend and reconnect where it is time. Never blocks."""
        replies = Replies([], [])
        while (frames := self._socket.receive()) is not None:
            self._heard_at = self._clock()
            message, tensors = self._codec.decode(frames)
            if isinstance(message, Actions):
                self._on_actions(message, tensors, replies)
            elif isinstance(message, Welcome):
                self._on_welcome(message, replies)
            elif isinstance(message, Error):
                self._on_error(message, replies)
            elif isinstance(message, Pong):
                self.policies = message.policies
        self._keep_alive(self._clock())
        return replies

    def close(self) -> None:
        """Say goodbye: the server frees this client's sessions."""
        if self._welcomed:
            self._say(Close())
            self._welcomed = False
        self._socket.close()

    def _on_welcome(self, message: Welcome, replies: Replies) -> None:
        first = not self._hello.token
        already = self._welcomed
        self._welcomed = True
        self._max_rows = message.limits.get("rows_per_step", 1)
        self.policies = message.policies
        self._hello = msgspec.structs.replace(self._hello, token=message.token)
        if message.resumed:
            if not already:
                self._resend(older_than=self._clock())
        elif first:
            self._resend(older_than=self._clock())
        else:
            self._outstanding.clear()
            self._waiting = 0
            replies.lost = True

    def _on_actions(self, message: Actions, tensors: dict[str, NDArray[Any]], replies: Replies) -> None:
        entry = self._outstanding.get(message.id)
        if entry is None:
            return
        rows = expect(tensors, "row", "int32", (None,)).tolist()
        columns = (
            expect(tensors, "action", "int32", (len(rows),)).tolist(),
            expect(tensors, "log_prob", "float32", (len(rows),)).tolist(),
            expect(tensors, "value", "float32", (len(rows),)).tolist(),
            expect(tensors, "policy_version", "int64", (len(rows),)).tolist(),
        )
        for row, action, log_prob, value, version in zip(rows, *columns):
            if d := self._close(entry, row):
                self.answered += 1
                replies.actions.append(
                    Action(d.env, d.seat, d.episode, d.step, d.attempt, action, log_prob, value, version)
                )
        self._forget_if_done(message.id, entry)

    def _on_error(self, message: Error, replies: Replies) -> None:
        if message.code == ERR_HELLO:
            self._welcomed = False
            self._said_at = -1e9
            return
        entry = self._outstanding.get(message.id)
        if entry is None:
            self._refusal = message
            return
        for row in message.rows or range(len(entry.tickets)):
            if d := self._close(entry, row):
                replies.failures.append(Failure(d.env, d.seat, d.episode, d.step, message.code, message.message))
        self._forget_if_done(message.id, entry)

    def _close(self, entry: _Outstanding, row: int) -> Decision | None:
        """The decision of an answered row, None where it was answered before."""
        if not 0 <= row < len(entry.tickets) or not entry.tickets[row].open:
            return None
        entry.tickets[row].open = False
        self._waiting -= 1
        return entry.tickets[row].decision

    def _forget_if_done(self, number: int, entry: _Outstanding) -> None:
        if not any(ticket.open for ticket in entry.tickets):
            del self._outstanding[number]

    def _keep_alive(self, now: float) -> None:
        if self._welcomed and now - self._heard_at > SILENT_AFTER_SEC and now - self._said_at < SILENT_AFTER_SEC:
            self._welcomed = False
        if not self._welcomed:
            if now - self._said_at >= HELLO_EVERY_SEC:
                self._say(self._hello)
            return
        if now - self._said_at >= PING_EVERY_SEC:
            self._say(Ping())
            self._resend(older_than=now - RESEND_AFTER_SEC)

    def _resend(self, older_than: float) -> None:
        """Send again, as a message of its own, what is still unanswered of old messages."""
        for number, entry in list(self._outstanding.items()):
            self._forget_if_done(number, entry)
            if entry.sent_at > older_than:
                continue
            tickets = [ticket for ticket in entry.tickets if ticket.open]
            entry.sent_at = float("inf")  # its copy is watched from now on
            if tickets:
                self.resent += 1
                self._track_and_send(tickets)

    def _track_and_send(self, tickets: list[_Ticket]) -> None:
        self._next_id += 1
        self._outstanding[self._next_id] = _Outstanding(tickets, self._clock())
        if self._welcomed:
            message, tensors = pack_step(self._next_id, [ticket.decision for ticket in tickets], self._spec)
            self._socket.send(encode_message(message, tensors))

    def _say(self, message: Message) -> None:
        self._said_at = self._clock()
        self._socket.send(encode_message(message))


def pack_step(number: int, decisions: Sequence[Decision], spec: GameSpec) -> tuple[Step, dict[str, NDArray[Any]]]:
    """The STEP message `number` for decisions, and its tensors (see `common.messages.Step`)."""
    n = len(decisions)
    names = {name: i for i, name in enumerate(dict.fromkeys(d.policy for d in decisions))}
    observation = np.zeros((n, spec.observation_size), spec.dtype())
    mask = np.zeros((n, spec.num_actions), np.uint8)
    for i, decision in enumerate(decisions):
        if decision.observation is not None:
            observation[i] = decision.observation
        if decision.mask is not None:
            mask[i] = decision.mask
    tensors: dict[str, NDArray[Any]] = {
        "keys": np.array([(d.env, d.seat, d.episode, d.step, d.attempt) for d in decisions], np.int64).reshape(n, 5),
        "kind": np.array([d.kind for d in decisions], np.uint8),
        "flags": np.array([d.flags for d in decisions], np.uint8),
        "reward": np.array([d.reward for d in decisions], np.float32),
        "observation": observation,
        "mask": mask,
        "policy": np.array([names[d.policy] for d in decisions], np.uint8),
    }
    return Step(id=number, policies=tuple(names)), tensors
