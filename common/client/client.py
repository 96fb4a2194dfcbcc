"""The inference client that workers and external agents share.

    client = InferenceClient(endpoint, name="my-bot", spec=spec)
    client.connect()
    client.submit([Decision(...), ...])      # everything that is ready, one message
    replies = client.poll()                  # never blocks; actions and failures as they come

The client pings, resends what stays unanswered (the server answers a resend with the identical reply), and
reconnects with its token. `Replies.lost` is set once where the server no longer has the sessions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec
from numpy.typing import ArrayLike

from simul.common.client.connection import ServerConnection
from simul.common.client.evaluation import Evaluation, PendingEvaluations, pack_evaluate
from simul.common.client.samples import PendingSamples, check_samples, pack_samples, split_samples
from simul.common.client.steps import PendingMessage, PendingSteps, check_shapes, pack_step
from simul.common.errors import ERR_BUSY, ERR_HELLO, ERR_NOT_READY, InferenceError
from simul.common.protocol.decisions import Action, Decision, Failure
from simul.common.protocol.messages import (
    LEARNER_POLICY,
    Actions,
    Error,
    Evaluated,
    Figures,
    Pong,
    Sampled,
    StatusRequest,
    Welcome,
)
from simul.common.protocol.samples import Sample
from simul.common.protocol.specs import GameSpec
from simul.common.transport import ClientKeys

SILENT_AFTER_SEC = 3.0  # without an answer: the server is considered gone, HELLO is sent again
RESEND_AFTER_SEC = 5.0
MAX_RETRY_SEC = 2.0  # bound of the exponential backoff while the server answers ERR_BUSY
MAX_DOUBLINGS = 8


class Replies(msgspec.Struct):
    """What arrived since the last poll. `lost`: the server no longer has any session of this client."""

    actions: list[Action]
    failures: list[Failure]
    lost: bool = False
    evaluations: list[Evaluation] = []
    figures: Figures | None = None


class InferenceClient:
    """A client of the inference socket. Not thread-safe; only `connect` blocks.

    `keys` (see `simul.common.transport.client_keys`) are required where the server has CURVE keys.

    Attributes:
        policies: names that the server offers. progress: share of the run's horizon that its learner has learned, as
            WELCOME and PONG tell holders of the training token; else 0.
        rows_per_message: rows that one message may have; 1 before WELCOME.
        samples: counts of the samples submitted, by what became of them.
        resent: messages sent again because no answer came.
        busy: messages answered with ERR_BUSY; each is sent again after the time the server asked for.
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
        self.progress = 0.0
        self.rows_per_message = 1
        self.resent = self.busy = 0
        self.samples = PendingSamples()
        self._steps = PendingSteps()
        self._evaluations = PendingEvaluations()
        self._spec = spec
        self._clock = clock
        self._connection = ServerConnection(
            endpoint, name=name, spec=spec, run_id=run_id, training_token=training_token, keys=keys, clock=clock
        )
        self.poller = self._connection.poller
        self._refusal: Error | None = None
        self._heard_at = -1e9
        self._busy_in_a_row = 0
        self._last_id = 0

    @property
    def connected(self) -> bool:
        """True from WELCOME until the server stops answering."""
        return self._connection.welcomed

    @property
    def waiting(self) -> int:
        """Rows not answered yet."""
        return self._steps.waiting

    @property
    def answered(self) -> int:
        """Rows answered so far."""
        return self._steps.answered

    @property
    def forgotten(self) -> int:
        """Rows that waited for an answer when the server lost this client's sessions."""
        return self._steps.forgotten

    def connect(self, timeout_sec: float = 10.0) -> None:
        """Send HELLO and wait for WELCOME.

        Raises:
            InferenceError: the server refused, or did not answer within `timeout_sec`.
        """
        self._connection.connect(self._poll_for_welcome, timeout_sec)

    def submit(self, decisions: Sequence[Decision], *, deadline_ms: int = 0) -> None:
        """Send decisions and ends, in one message where the server's limit allows.

        `deadline_ms`: rows that wait longer fail with ERR_DEADLINE, their sessions unchanged; 0: no deadline.

        Raises:
            ValueError: an observation or a mask has the wrong shape; none of the decisions is sent.
        """
        check_shapes(decisions, self._spec)
        for start in range(0, len(decisions), self.rows_per_message):
            rows = decisions[start : start + self.rows_per_message]
            self._send_steps(self._steps.add_rows(rows, deadline_ms))

    def evaluate(
        self,
        observation: ArrayLike,
        mask: ArrayLike,
        *,
        policy: str = LEARNER_POLICY,
        sessions: Sequence[tuple[int, int, int]] | None = None,
        packed: bool = False,
    ) -> int:
        """Request priors and values without acting. Returns the id of the answer in `Replies.evaluations`.

        Read `Evaluation.legal_priors` where there are many actions: `Evaluation.priors` has a number for each of them.

        Args:
            observation: [N, D], N at most `rows_per_step` of the server's limits; mask: [N, A], True = legal.
            policy: name of the policy to evaluate with.
            sessions: for each row (env, seat, episode) of an own session whose state is read, or NO_SESSION. The state
                is read when the row is evaluated: wait for the session's action first.
            packed: the masks are bits, uint8 [N, ceil(A / 8)]: action a is bit a % 8 (the lowest is 0) of byte a // 8.

        The arrays may be kept until the answer has come: do not write to them.

        Raises:
            ValueError: an array has the wrong shape, or a packed mask a bit beyond the last action.
        """
        message, tensors = pack_evaluate(
            self._next_id(), observation, mask, self._spec, policy=policy, sessions=sessions, packed=packed
        )  # fmt: skip
        self._evaluations.add(message, tensors, self._spec.num_actions)
        self._send_request(self._evaluations, message.id)
        return message.id

    def submit_samples(self, samples: Sequence[Sample]) -> None:
        """Send positions of searched games to the learner, in as few messages as the limits allow.

        They are kept, and sent again, until the server has taken or refused them, also over its restart. While the
        learner has no room they wait here: `samples.waiting` tells how many, so that the caller can pause.

        Raises:
            ValueError: an array of a sample has the wrong shape; none is sent.
        """
        check_samples(samples, self._spec)
        for part in split_samples(samples, self.rows_per_message):
            message, tensors = pack_samples(self._next_id(), part, self._spec)
            self.samples.add(message, tensors)
            self._send_request(self.samples, message.id)

    def ask_status(self) -> None:
        """Request the server's figures; they arrive in `Replies.figures`."""
        self._connection.send_keepalive(StatusRequest())

    def poll(self) -> Replies:
        """Read what arrived; ping, resend and reconnect where due. Never blocks.

        Raises:
            InferenceError: HELLO is refused after a reconnect, for example because a newer run_id of this name exists.
            ProtocolError: an answer does not decode.
        """
        replies = Replies([], [])
        while (received := self._connection.receive()) is not None:
            self._heard_at = self._clock()
            message, tensors = received
            if isinstance(message, Actions):
                self._add_replies(replies, actions=self._steps.apply_actions(message, tensors))
            elif isinstance(message, Welcome):
                self._on_welcome(message, replies)
            elif isinstance(message, Error):
                self._on_error(message, replies)
            elif isinstance(message, Evaluated):
                self._add_replies(replies, evaluations=self._evaluations.apply_evaluated(message, tensors))
            elif isinstance(message, Sampled):
                if self.samples.apply_sampled(message):
                    self._busy_in_a_row = 0
            elif isinstance(message, Figures):
                replies.figures = message
            elif isinstance(message, Pong):
                self.policies, self.progress = message.policies, message.progress
        if self._refusal is not None and self._connection.hello.token and not self._connection.welcomed:
            raise InferenceError(
                self._refusal.code,
                f"the server accepted this client before and refuses it now: {self._refusal.message}",
            )
        self._keep_alive(self._clock())
        return replies

    def close(self) -> None:
        """Send CLOSE: the server frees this client's sessions."""
        self._connection.close()

    def _poll_for_welcome(self) -> Error | None:
        self.poll()
        return self._refusal

    def _on_welcome(self, message: Welcome, replies: Replies) -> None:
        first = not self._connection.hello.token
        already = self._connection.welcomed
        self._connection.on_welcome(message)
        self._refusal = None
        self.rows_per_message = message.limits.get("rows_per_step", 1)
        self.policies, self.progress = message.policies, message.progress
        lost = not message.resumed and not first
        if lost:  # evaluations and samples are resent: they need no session, or are refused where it is gone
            self._steps.drop_all()
            replies.lost = True
        if lost or first or not already:
            self._resend(older_than=self._clock())

    def _add_replies(
        self, replies: Replies, actions: Sequence[Action] = (), evaluations: Sequence[Evaluation] = ()
    ) -> None:
        if actions or evaluations:
            self._busy_in_a_row = 0
        replies.actions += actions
        replies.evaluations += evaluations

    def _on_error(self, message: Error, replies: Replies) -> None:
        if message.code == ERR_HELLO:
            self._connection.welcomed = False
            self._connection.keepalive_at = -1e9
            return
        kinds = (self._steps, self._evaluations, self.samples)
        pending = next((kind for kind in kinds if message.id in kind), None)
        if pending is None:
            if message.id < 0:  # not a second answer, to a message that was sent again and is settled
                self._refusal = message
        elif message.code == ERR_BUSY or (pending is self.samples and message.code == ERR_NOT_READY):
            self._retry_later(pending, message)  # nothing was admitted
        elif pending is self._steps:
            replies.failures += self._steps.apply_error(message)
        elif pending is self._evaluations:
            self._add_replies(replies, evaluations=self._evaluations.apply_error(message))
        else:
            self.samples.apply_error(message)

    def _keep_alive(self, now: float) -> None:
        connection = self._connection
        asked_lately = now - connection.keepalive_at < SILENT_AFTER_SEC
        if connection.welcomed and now - self._heard_at > SILENT_AFTER_SEC and asked_lately:
            connection.welcomed = False
        if connection.welcomed:
            self._send_due(now)
        if connection.keep_alive(now):
            self._resend(older_than=now - RESEND_AFTER_SEC)

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _send_steps(self, pending: PendingMessage, *, resend: bool = False) -> None:
        """`resend`: skip the shared-memory block; it may have been reused by the time the server reads it."""
        number, connection = self._next_id(), self._connection
        self._steps.mark_sent(number, pending, self._clock())
        if connection.welcomed:
            decisions = [row.decision for row in pending.rows]
            block = None if resend else connection.allocate_block(number, len(decisions), self._steps)
            message, tensors = pack_step(number, decisions, self._spec, block, deadline_ms=pending.deadline_ms)
            connection.send(message, tensors)

    def _send_request(self, requests: PendingEvaluations | PendingSamples, number: int) -> None:
        """Send a message, or send it again under its id; a second answer to it is ignored."""
        if self._connection.welcomed and number in requests:
            request = requests.mark_sent(number, self._clock())
            self._connection.send(request.message, request.tensors)

    def _send_due(self, now: float) -> None:
        """Send deferred messages that are due."""
        for pending in self._steps.due(now):
            self._send_steps(pending)
        for requests in (self._evaluations, self.samples):
            for number in requests.due(now):
                self._send_request(requests, number)

    def _resend(self, older_than: float) -> None:
        """Send again what is unanswered of messages sent before `older_than`."""
        for pending in self._steps.overdue(older_than):
            self.resent += 1
            self._send_steps(pending, resend=True)
        for requests in (self._evaluations, self.samples):
            for number in requests.overdue(older_than):
                self.resent += 1
                self._send_request(requests, number)

    def _retry_later(self, pending: PendingSteps | PendingEvaluations | PendingSamples, refusal: Error) -> None:
        """Retry a message for which the server has no room now, with exponential backoff."""
        self.busy += 1
        self._busy_in_a_row = min(self._busy_in_a_row + 1, MAX_DOUBLINGS)
        wait_sec = max(1, refusal.retry_after_ms) / 1000 * 2 ** (self._busy_in_a_row - 1)
        pending.defer(refusal.id, self._clock() + min(wait_sec, MAX_RETRY_SEC))
