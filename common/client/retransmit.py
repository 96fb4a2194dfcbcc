"""What a client sends to the inference server: rows and questions, and again what stays unanswered or was put off."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from simul.common.client.connection import ServerLine
from simul.common.client.evaluation import EvaluationBook
from simul.common.client.pending_steps import Parcel, StepBook, pack_step
from simul.common.protocol.messages import Error
from simul.common.protocol.specs import GameSpec

LONGEST_RETRY_SEC = 2.0  # however often the server says that it is busy
MOST_DOUBLINGS = 8


class Outbox:
    """Of one client. `steps` and `evaluations` hold what the server owes; nothing goes out before we are welcome.

    Attributes:
        resent: messages that were sent again because no answer came.
        busy: messages that the server was too busy for; each is sent again after the time it asked for.
    """

    def __init__(self, line: ServerLine, spec: GameSpec, clock: Callable[[], float]) -> None:
        self.resent = self.busy = 0
        self.steps = StepBook()
        self.evaluations = EvaluationBook(spec)
        self._line = line
        self._spec = spec
        self._clock = clock
        self._busy_in_a_row = 0
        self._last_id = 0

    def next_id(self) -> int:
        """Number of a new message."""
        self._last_id += 1
        return self._last_id

    def send(self, parcel: Parcel, *, again: bool = False) -> None:
        """`again`: whoever gets the same rows twice reads the second time when their block may be another's already."""
        number = self.next_id()
        self.steps.sent(number, parcel, self._clock())
        if self._line.welcomed:
            decisions = [ticket.decision for ticket in parcel.tickets]
            block = None if again else self._line.block(number, len(decisions), self.steps)
            message, tensors = pack_step(number, decisions, self._spec, block)
            message = msgspec.structs.replace(message, deadline_ms=parcel.deadline_ms)
            self._line.send(message, tensors)

    def ask(self, number: int) -> None:
        """Send an EVALUATE, perhaps again. Sent twice it may be answered twice; the second answer finds nobody."""
        if self._line.welcomed and number in self.evaluations:
            self.evaluations.asked(number, self._clock())
            self._line.send(*self.evaluations.of(number))

    def send_due(self, now: float) -> None:
        """Send what was put off until now."""
        for parcel in self.steps.due(now):
            self.send(parcel)
        for number in self.evaluations.due(now):
            self.ask(number)

    def resend(self, older_than: float) -> None:
        """Send again what is still unanswered of old messages."""
        for parcel in self.steps.overdue(older_than):
            self.resent += 1
            self.send(parcel, again=True)
        for number in self.evaluations.overdue(older_than):
            self.resent += 1
            self.ask(number)

    def put_off(self, book: StepBook | EvaluationBook, refusal: Error) -> None:
        """The server was too busy for a message of `book`: again when it expects to have room.

        Each time in a row that it is busy the wait is longer.
        """
        self.busy += 1
        self._busy_in_a_row = min(self._busy_in_a_row + 1, MOST_DOUBLINGS)
        wait_sec = max(1, refusal.retry_after_ms) / 1000 * 2 ** (self._busy_in_a_row - 1)
        book.put_off(refusal.id, self._clock() + min(wait_sec, LONGEST_RETRY_SEC))

    def was_answered(self) -> None:
        """The server is not too busy any longer."""
        self._busy_in_a_row = 0
