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
from numpy.typing import ArrayLike, NDArray

from common.codec import Codec, expect
from common.codec import encode as encode_message
from common.decisions import Action, Decision, Failure
from common.errors import ERR_BUSY, ERR_HELLO, InferenceError
from common.evaluation_client import Evaluation, EvaluationBook, pack_evaluate
from common.messages import (
    PROTOCOL,
    TO_CLIENT,
    Actions,
    Close,
    Error,
    Evaluated,
    Figures,
    Hello,
    Message,
    Ping,
    Pong,
    StatusRequest,
    Step,
    Welcome,
)  # fmt: skip
from common.specs import GameSpec
from common.transport import ClientKeys, DealerSocket, Poller

PING_EVERY_SEC = 1.0
SILENT_AFTER_SEC = 3.0  # the server is taken for gone, HELLO is said again
HELLO_EVERY_SEC = 0.5
RESEND_AFTER_SEC = 5.0
LONGEST_RETRY_SEC = 2.0  # however often the server says that it is busy
MOST_DOUBLINGS = 8


class Replies(msgspec.Struct):
    """What came since the last poll. `lost`: the server forgot every session of this client."""

    actions: list[Action]
    failures: list[Failure]
    lost: bool = False
    evaluations: list[Evaluation] = []
    figures: Figures | None = None


class _Ticket(msgspec.Struct):
    """One row that the server owes; every message that carries the row, a resend too, refers to the same ticket."""

    decision: Decision
    open: bool = True


class _Outstanding(msgspec.Struct):
    tickets: list[_Ticket]
    sent_at: float
    deadline_ms: int = 0


class _Retry(msgspec.Struct):
    """What the server was too busy for: the tickets of a STEP, or the number of an EVALUATE."""

    due_at: float
    what: _Outstanding | int


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
        self.busy = 0  # messages that the server was too busy for; each was sent again after the time it asked for
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
        self._evaluations = EvaluationBook(spec)
        self._evaluated_at: dict[int, float] = {}
        self._retries: list[_Retry] = []
        self._busy_in_a_row = 0
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

    def submit(self, decisions: Sequence[Decision], *, deadline_ms: int = 0) -> None:
        """Send decisions and ends, in one message where the server's limit allows.

        `deadline_ms`: rows that wait longer for their batch come back as ERR_DEADLINE, their sessions unmoved; 0: none.
        """
        for start in range(0, len(decisions), self._max_rows):
            tickets = [_Ticket(decision) for decision in decisions[start : start + self._max_rows]]
            self._waiting += len(tickets)
            self._track_and_send(tickets, deadline_ms)

    def evaluate(
        self,
        observation: ArrayLike,
        mask: ArrayLike,
        *,
        policy: str = "learner",
        sessions: Sequence[tuple[int, int, int]] | None = None,
    ) -> int:
        """Ask for priors and values without acting; `Replies.evaluations` holds the answer under the number returned.

        Args:
            observation: [N, D], N at most `rows_per_step` of the server's limits; mask: [N, A], true = legal.
            policy: who is asked.
            sessions: (env, seat, episode) of an own session whose state is read, for each row, or NO_SESSION. A state
                is that of the moment when the row is evaluated: wait for the session's action first.

        Raises:
            ValueError: an array has the wrong shape.
        """
        message, tensors = pack_evaluate(
            self._next_id + 1, observation, mask, self._spec, policy=policy, sessions=sessions
        )  # fmt: skip
        self._next_id += 1
        self._evaluations.add(message, tensors)
        self._ask(message.id)
        return message.id

    def ask_status(self) -> None:
        """Ask for the server's figures; they come as `Replies.figures`."""
        self._say(StatusRequest())

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
            elif isinstance(message, Evaluated):
                self._on_evaluations(self._evaluations.take(message, tensors), replies)
            elif isinstance(message, Figures):
                replies.figures = message
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
            self._retries.clear()
            self._waiting = 0
            replies.lost = True
            self._resend(older_than=self._clock())  # evaluations: they need no session, or say which is gone

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
                self._busy_in_a_row = 0
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
        if message.code == ERR_BUSY and (entry is not None or message.id in self._evaluations):
            self._on_busy(message, entry)
            return
        if message.id in self._evaluations:
            self._on_evaluations(self._evaluations.refuse(message), replies)
            return
        if entry is None:
            self._refusal = message
            return
        for row in message.rows or range(len(entry.tickets)):
            if d := self._close(entry, row):
                replies.failures.append(Failure(d.env, d.seat, d.episode, d.step, message.code, message.message))
        self._forget_if_done(message.id, entry)

    def _on_busy(self, message: Error, entry: _Outstanding | None) -> None:
        """Nothing was admitted: send it again when the server expects to have room, later each time it has not."""
        self.busy += 1
        self._busy_in_a_row = min(self._busy_in_a_row + 1, MOST_DOUBLINGS)
        wait_sec = max(1, message.retry_after_ms) / 1000 * 2 ** (self._busy_in_a_row - 1)
        due_at = self._clock() + min(wait_sec, LONGEST_RETRY_SEC)
        if entry is not None:
            entry.sent_at = float("inf")  # its copy is watched from now on
        self._retries.append(_Retry(due_at, message.id if entry is None else entry))

    def _on_evaluations(self, finished: list[Evaluation], replies: Replies) -> None:
        for evaluation in finished:
            self._busy_in_a_row = 0
            self._evaluated_at.pop(evaluation.id, None)
            replies.evaluations.append(evaluation)

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
        self._retry(now)
        if now - self._said_at >= PING_EVERY_SEC:
            self._say(Ping())
            self._resend(older_than=now - RESEND_AFTER_SEC)

    def _retry(self, now: float) -> None:
        due = [retry for retry in self._retries if retry.due_at <= now]
        if due:
            self._retries = [retry for retry in self._retries if retry.due_at > now]
        for retry in due:
            if isinstance(retry.what, int):
                self._ask(retry.what)
            elif tickets := [ticket for ticket in retry.what.tickets if ticket.open]:
                self._track_and_send(tickets, retry.what.deadline_ms)

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
                self._track_and_send(tickets, entry.deadline_ms)
        for asked in self._evaluations.numbers():
            if self._evaluated_at.get(asked, -1e9) <= older_than:
                self.resent += 1
                self._ask(asked)

    def _track_and_send(self, tickets: list[_Ticket], deadline_ms: int = 0) -> None:
        self._next_id += 1
        self._outstanding[self._next_id] = _Outstanding(tickets, self._clock(), deadline_ms)
        if self._welcomed:
            message, tensors = pack_step(self._next_id, [ticket.decision for ticket in tickets], self._spec)
            message = msgspec.structs.replace(message, deadline_ms=deadline_ms)
            self._socket.send(encode_message(message, tensors))

    def _ask(self, number: int) -> None:
        """Send an EVALUATE, perhaps again. Sent twice it may be answered twice; the second answer finds nobody."""
        if self._welcomed and number in self._evaluations:
            self._evaluated_at[number] = self._clock()
            self._socket.send(encode_message(*self._evaluations.of(number)))

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
    if any(d.temperature != 1.0 for d in decisions):
        tensors["temperature"] = np.array([d.temperature for d in decisions], np.float32)
    return Step(id=number, policies=tuple(names)), tensors
