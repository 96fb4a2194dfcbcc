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

import msgspec
from numpy.typing import ArrayLike

from simul.common.client.connection import ServerLine
from simul.common.client.evaluation import Evaluation, pack_evaluate
from simul.common.client.pending import Outbox, check_shapes
from simul.common.protocol.decisions import Action, Decision, Failure
from simul.common.protocol.errors import ERR_BUSY, ERR_HELLO, InferenceError
from simul.common.protocol.messages import Actions, Error, Evaluated, Figures, Pong, StatusRequest, Welcome
from simul.common.protocol.specs import GameSpec
from simul.common.transport import ClientKeys

SILENT_AFTER_SEC = 3.0  # the server is taken for gone, HELLO is said again
RESEND_AFTER_SEC = 5.0


class Replies(msgspec.Struct):
    """What came since the last poll. `lost`: the server forgot every session of this client."""

    actions: list[Action]
    failures: list[Failure]
    lost: bool = False
    evaluations: list[Evaluation] = []
    figures: Figures | None = None


class InferenceClient:
    """One client's life at the inference socket. Not thread-safe; never blocks after `connect`.

    `keys` (see `simul.common.transport.client_keys`) are needed where the server has CURVE keys.
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
        self._spec = spec
        self._clock = clock
        self._line = ServerLine(
            endpoint, name=name, spec=spec, run_id=run_id, training_token=training_token, keys=keys, clock=clock
        )
        self.poller = self._line.poller
        self._max_rows = 1
        self._refusal: Error | None = None
        self._outbox = Outbox(self._line, spec, clock)
        self._steps, self._evaluations = self._outbox.steps, self._outbox.evaluations
        self._heard_at = -1e9

    @property
    def connected(self) -> bool:
        """True between WELCOME and the moment the server falls silent."""
        return self._line.welcomed

    @property
    def waiting(self) -> int:
        """Rows that the server still owes."""
        return self._steps.waiting

    @property
    def answered(self) -> int:
        """Rows that the server has answered."""
        return self._steps.answered

    @property
    def forgotten(self) -> int:
        """Rows that waited for an answer when the server forgot us."""
        return self._steps.forgotten

    @property
    def resent(self) -> int:
        """Messages that were sent again because no answer came."""
        return self._outbox.resent

    @property
    def busy(self) -> int:
        """Messages that the server was too busy for; each is sent again after the time it asked for."""
        return self._outbox.busy

    def connect(self, timeout_sec: float = 10.0) -> None:
        """Say HELLO and wait for WELCOME.

        Raises:
            InferenceError: the server refused, or did not answer within `timeout_sec`.
        """
        self._line.connect(self._poll_for_welcome, timeout_sec)

    def submit(self, decisions: Sequence[Decision], *, deadline_ms: int = 0) -> None:
        """Send decisions and ends, in one message where the server's limit allows.

        `deadline_ms`: rows that wait longer for their batch come back as ERR_DEADLINE, their sessions unmoved; 0: none.

        Raises:
            ValueError: an observation or a mask has the wrong shape; none of the decisions is sent.
        """
        check_shapes(decisions, self._spec)
        for start in range(0, len(decisions), self._max_rows):
            self._outbox.send(self._steps.open(decisions[start : start + self._max_rows], deadline_ms))

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
            self._outbox.next_id(), observation, mask, self._spec, policy=policy, sessions=sessions
        )  # fmt: skip
        self._evaluations.add(message, tensors)
        self._outbox.ask(message.id)
        return message.id

    def ask_status(self) -> None:
        """Ask for the server's figures; they come as `Replies.figures`."""
        self._line.say(StatusRequest())

    def poll(self) -> Replies:
        """Take in what arrived; ping, resend and reconnect where it is time. Never blocks.

        Raises:
            InferenceError: HELLO is refused by a server that knew us, such as for a newer life of our name.
        """
        replies = Replies([], [])
        while (received := self._line.receive()) is not None:
            self._heard_at = self._clock()
            message, tensors = received
            if isinstance(message, Actions):
                self._take_in(replies, actions=self._steps.take(message, tensors))
            elif isinstance(message, Welcome):
                self._on_welcome(message, replies)
            elif isinstance(message, Error):
                self._on_error(message, replies)
            elif isinstance(message, Evaluated):
                self._take_in(replies, evaluations=self._evaluations.take(message, tensors))
            elif isinstance(message, Figures):
                replies.figures = message
            elif isinstance(message, Pong):
                self.policies = message.policies
        if self._refusal is not None and self._line.hello.token and not self._line.welcomed:
            raise InferenceError(
                self._refusal.code, f"the server let us in before and refuses now: {self._refusal.message}"
            )
        self._keep_alive(self._clock())
        return replies

    def close(self) -> None:
        """Say goodbye: the server frees this client's sessions."""
        self._line.close()

    def _poll_for_welcome(self) -> Error | None:
        self.poll()
        return self._refusal

    def _on_welcome(self, message: Welcome, replies: Replies) -> None:
        first = not self._line.hello.token
        already = self._line.welcomed
        self._line.on_welcome(message)
        self._max_rows = message.limits.get("rows_per_step", 1)
        self.policies = message.policies
        lost = not message.resumed and not first
        if lost:  # evaluations are asked again: they need no session, or say which is gone
            self._steps.forget()
            replies.lost = True
        if lost or first or not already:
            self._outbox.resend(older_than=self._clock())

    def _take_in(
        self, replies: Replies, actions: Sequence[Action] = (), evaluations: Sequence[Evaluation] = ()
    ) -> None:
        if actions or evaluations:
            self._outbox.was_answered()
        replies.actions += actions
        replies.evaluations += evaluations

    def _on_error(self, message: Error, replies: Replies) -> None:
        if message.code == ERR_HELLO:
            self._line.welcomed = False
            self._line.said_at = -1e9
            return
        book = next((book for book in (self._steps, self._evaluations) if message.id in book), None)
        if book is None:
            self._refusal = message
        elif message.code == ERR_BUSY:  # nothing was admitted
            self._outbox.put_off(book, message)
        elif book is self._steps:
            replies.failures += self._steps.refuse(message)
        else:
            self._take_in(replies, evaluations=self._evaluations.refuse(message))

    def _keep_alive(self, now: float) -> None:
        line = self._line
        if line.welcomed and now - self._heard_at > SILENT_AFTER_SEC and now - line.said_at < SILENT_AFTER_SEC:
            line.welcomed = False
        if line.welcomed:
            self._outbox.send_due(now)
        if line.keep_alive(now):
            self._outbox.resend(older_than=now - RESEND_AFTER_SEC)
