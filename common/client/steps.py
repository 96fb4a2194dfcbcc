"""STEP for `InferenceClient`: packs decisions, and keeps them until they are answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from simul.common.client.evaluation import check_bytes
from simul.common.client.observation_memory import ObservationBlock
from simul.common.protocol.codec import Tensors, expect
from simul.common.protocol.decisions import Action, Decision, Failure
from simul.common.protocol.masks import PACKED_FROM, pack_masks
from simul.common.protocol.messages import NO_LABEL, Actions, Error, Step
from simul.common.protocol.specs import GameSpec


class PendingRow(msgspec.Struct):
    """One row that the server has not answered; a resend refers to the same object."""

    decision: Decision
    open: bool = True


class PendingMessage(msgspec.Struct):
    """Rows of one STEP message. `sent_at` (seconds) is infinite once a later message carries its unanswered rows."""

    rows: list[PendingRow]
    deadline_ms: int
    sent_at: float = 0.0

    def split_unanswered(self) -> PendingMessage | None:
        """A new message of the rows still unanswered, None if there are none. This one is no longer overdue."""
        self.sent_at = float("inf")
        still = [row for row in self.rows if row.open]
        return PendingMessage(still, self.deadline_ms) if still else None


class PendingSteps:
    """Every row submitted, until it is answered, refused or dropped. Pure: time is an argument, in seconds.

    Attributes:
        waiting: rows not answered yet. answered: rows answered. forgotten: rows that will never be answered.
    """

    def __init__(self) -> None:
        self.waiting = self.answered = self.forgotten = 0
        self._sent: dict[int, PendingMessage] = {}
        self._deferred: list[tuple[float, PendingMessage]] = []

    def __contains__(self, number: object) -> bool:
        return number in self._sent

    def add_rows(self, decisions: Sequence[Decision], deadline_ms: int) -> PendingMessage:
        """Register new rows, to be sent as one message."""
        self.waiting += len(decisions)
        return PendingMessage([PendingRow(decision) for decision in decisions], deadline_ms)

    def mark_sent(self, number: int, pending: PendingMessage, now: float) -> None:
        """Register `pending` as the STEP message `number`; without a connection it is sent by a later resend."""
        pending.sent_at = now
        self._sent[number] = pending

    def apply_actions(self, message: Actions, tensors: Tensors) -> list[Action]:
        """Mark rows as answered. Returns their actions; a row answered before yields none. Raises ProtocolError."""
        pending = self._sent.get(message.id)
        if pending is None:
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
            if d := self._close(pending, row):
                actions.append(Action(d.env, d.seat, d.episode, d.step, d.attempt, action, log_prob, value, version))
        self.answered += len(actions)
        self._remove_if_done(message.id, pending)
        return actions

    def apply_error(self, error: Error) -> list[Failure]:
        """Mark rows as refused, all of the message where `error.rows` is empty. Returns their failures."""
        pending = self._sent[error.id]
        failures = []
        for row in error.rows or range(len(pending.rows)):
            if d := self._close(pending, row):
                failures.append(
                    Failure(d.env, d.seat, d.episode, d.step, error.code, error.message, error.retry_after_ms)
                )
        self._remove_if_done(error.id, pending)
        return failures

    def defer(self, number: int, until: float) -> None:
        """Schedule the rows of a message that the server was too busy for: due again at `until`."""
        pending = self._sent[number]
        if again := pending.split_unanswered():
            self._deferred.append((until, again))

    def due(self, now: float) -> Iterator[PendingMessage]:
        """Deferred rows that are due, as new messages."""
        ready = [pending for until, pending in self._deferred if until <= now]
        self._deferred = [entry for entry in self._deferred if entry[0] > now]
        return (again for pending in ready if (again := pending.split_unanswered()))

    def overdue(self, older_than: float) -> Iterator[PendingMessage]:
        """Unanswered rows of messages sent before `older_than`, as new messages."""
        for number, pending in list(self._sent.items()):
            self._remove_if_done(number, pending)
            if pending.sent_at <= older_than and (again := pending.split_unanswered()):
                yield again

    def drop_all(self) -> None:
        """Count every waiting row as forgotten: the server has lost the sessions."""
        self._sent.clear()
        self._deferred.clear()
        self.forgotten += self.waiting
        self.waiting = 0

    def _close(self, pending: PendingMessage, index: int) -> Decision | None:
        """The decision of row `index`, None where it was answered before or does not exist."""
        if not 0 <= index < len(pending.rows) or not pending.rows[index].open:
            return None
        pending.rows[index].open = False
        self.waiting -= 1
        return pending.rows[index].decision

    def _remove_if_done(self, number: int, pending: PendingMessage) -> None:
        if not any(row.open for row in pending.rows):
            del self._sent[number]


def check_shapes(decisions: Sequence[Decision], spec: GameSpec) -> None:
    """Raises ValueError where an observation is not [D], a mask not [A] or a label not [K]."""
    in_bytes = spec.observation_dtype == "uint8"
    for d in decisions:
        if d.label and len(d.label) != spec.opponent_labels:
            raise ValueError(
                f"the label of env {d.env} seat {d.seat} has {len(d.label)} numbers; the game {spec.name} declares "
                f"{spec.opponent_labels}"
            )
        if in_bytes and d.observation is not None:
            check_bytes(d.observation, spec)
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
    number: int,
    decisions: Sequence[Decision],
    spec: GameSpec,
    block: ObservationBlock | None = None,
    *,
    deadline_ms: int = 0,
) -> tuple[Step, dict[str, NDArray[Any]]]:
    """The STEP message `number` for decisions, and its tensors (see `simul.common.protocol.messages.Step`).

    `block`: shared memory that receives the observations; None: they are a tensor of the message.
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
        "mask": mask if spec.num_actions < PACKED_FROM else pack_masks(mask),
        "policy": np.array([names[d.policy] for d in decisions], np.uint8),
    }
    if any(d.temperature != 1.0 for d in decisions):
        tensors["temperature"] = np.array([d.temperature for d in decisions], np.float32)
    if any(d.label for d in decisions):
        none = (NO_LABEL,) * spec.opponent_labels
        tensors["label"] = np.array([d.label or none for d in decisions], np.int16)
    if block is not None:
        del tensors["observation"]
    at = -1 if block is None else block.offset
    return Step(id=number, policies=tuple(names), deadline_ms=deadline_ms, observation_at=at), tensors
