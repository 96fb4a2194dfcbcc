"""Requests of a client that the server has not answered in full: packing, bookkeeping, resends and retries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from simul.common.client.connection import ServerLine
from simul.common.client.evaluation import EvaluationBook
from simul.common.client.observation_memory import Block
from simul.common.protocol.codec import Tensors, expect
from simul.common.protocol.decisions import Action, Decision, Failure
from simul.common.protocol.messages import Actions, Error, Step
from simul.common.protocol.specs import GameSpec


class Ticket(msgspec.Struct):
    """One row that the server owes; every message that carries the row, a resend too, refers to the same ticket."""

    decision: Decision
    open: bool = True


class Parcel(msgspec.Struct):
    """Tickets that travel in one STEP message. `sent_at` inf: a copy of it is watched instead."""

    tickets: list[Ticket]
    deadline_ms: int
    sent_at: float = 0.0

    def again(self) -> Parcel | None:
        """What of it is still unanswered, None if nothing is; this one is not watched any longer."""
        self.sent_at = float("inf")
        still = [ticket for ticket in self.tickets if ticket.open]
        return Parcel(still, self.deadline_ms) if still else None


class StepBook:
    """Every row that was submitted, until it is answered, refused or forgotten. Time is an argument.

    Attributes:
        waiting: rows that the server owes. answered: rows it has answered. forgotten: rows it never will.
    """

    def __init__(self) -> None:
        self.waiting = self.answered = self.forgotten = 0
        self._sent: dict[int, Parcel] = {}
        self._put_off: list[tuple[float, Parcel]] = []

    def __contains__(self, number: object) -> bool:
        return number in self._sent

    def open(self, decisions: Sequence[Decision], deadline_ms: int) -> Parcel:
        """New rows, to be sent as one message."""
        self.waiting += len(decisions)
        return Parcel([Ticket(decision) for decision in decisions], deadline_ms)

    def sent(self, number: int, parcel: Parcel, now: float) -> None:
        """A parcel went out as the STEP message `number`, or will when there is a connection."""
        parcel.sent_at = now
        self._sent[number] = parcel

    def take(self, message: Actions, tensors: Tensors) -> list[Action]:
        """Take an answer in: the actions that are news."""
        parcel = self._sent.get(message.id)
        if parcel is None:
            return []
        rows = expect(tensors, "row", "int32", (None,)).tolist()
        columns = (
            expect(tensors, "action", "int32", (len(rows),)).tolist(),
            expect(tensors, "log_prob", "float32", (len(rows),)).tolist(),
            expect(tensors, "value", "float32", (len(rows),)).tolist(),
            expect(tensors, "policy_version", "int64", (len(rows),)).tolist(),
        )
        actions = []
        for row, action, log_prob, value, version in zip(rows, *columns):
            if d := self._close(parcel, row):
                actions.append(Action(d.env, d.seat, d.episode, d.step, d.attempt, action, log_prob, value, version))
        self.answered += len(actions)
        self._forget_if_done(message.id, parcel)
        return actions

    def refuse(self, error: Error) -> list[Failure]:
        """Take an ERROR in: the rows that failed by it."""
        parcel = self._sent[error.id]
        failures = []
        for row in error.rows or range(len(parcel.tickets)):
            if d := self._close(parcel, row):
                failures.append(
                    Failure(d.env, d.seat, d.episode, d.step, error.code, error.message, error.retry_after_ms)
                )
        self._forget_if_done(error.id, parcel)
        return failures

    def put_off(self, number: int, until: float) -> None:
        """The server was too busy for a message: its rows are due again at `until`."""
        parcel = self._sent[number]
        if again := parcel.again():
            self._put_off.append((until, again))

    def due(self, now: float) -> Iterator[Parcel]:
        """What was put off until now."""
        ready = [parcel for until, parcel in self._put_off if until <= now]
        self._put_off = [entry for entry in self._put_off if entry[0] > now]
        return (again for parcel in ready if (again := parcel.again()))

    def overdue(self, older_than: float) -> Iterator[Parcel]:
        """What was sent before `older_than` and is still unanswered, to be sent again as messages of their own."""
        for number, parcel in list(self._sent.items()):
            self._forget_if_done(number, parcel)
            if parcel.sent_at <= older_than and (again := parcel.again()):
                yield again

    def forget(self) -> None:
        """Nothing of this will ever be answered."""
        self._sent.clear()
        self._put_off.clear()
        self.forgotten += self.waiting
        self.waiting = 0

    def _close(self, parcel: Parcel, row: int) -> Decision | None:
        """The decision of an answered row, None where it was answered before."""
        if not 0 <= row < len(parcel.tickets) or not parcel.tickets[row].open:
            return None
        parcel.tickets[row].open = False
        self.waiting -= 1
        return parcel.tickets[row].decision

    def _forget_if_done(self, number: int, parcel: Parcel) -> None:
        if not any(ticket.open for ticket in parcel.tickets):
            del self._sent[number]


def check_shapes(decisions: Sequence[Decision], spec: GameSpec) -> None:
    """Raises ValueError where an observation or a mask has another shape than [D] or [A]: numpy would spread it."""
    for d in decisions:
        for name, array, size in (
            ("observation", d.observation, spec.observation_size),
            ("mask", d.mask, spec.num_actions),
        ):
            if array is not None and np.shape(array) != (size,):
                raise ValueError(
                    f"the {name} of env {d.env} seat {d.seat} has shape {list(np.shape(array))}; "
                    f"the game {spec.name} expects [{size}]"
                )


def pack_step(
    number: int, decisions: Sequence[Decision], spec: GameSpec, block: Block | None = None
) -> tuple[Step, dict[str, NDArray[Any]]]:
    """The STEP message `number` for decisions, and its tensors (see `simul.common.protocol.messages.Step`).

    `block`: shared memory where the observations are laid; None: they are a tensor of the message.
    """
    n = len(decisions)
    names = {name: i for i, name in enumerate(dict.fromkeys(d.policy for d in decisions))}
    observation = np.empty((n, spec.observation_size), spec.dtype()) if block is None else block.observation
    mask = np.zeros((n, spec.num_actions), np.uint8)
    for i, decision in enumerate(decisions):
        observation[i] = 0 if decision.observation is None else decision.observation
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
    if block is not None:
        del tensors["observation"]
    return Step(id=number, policies=tuple(names), observation_at=-1 if block is None else block.offset), tensors


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
