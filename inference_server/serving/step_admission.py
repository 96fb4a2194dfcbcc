"""Admits the rows of a STEP message: each becomes a waiting row, an immediate reply, or an error of its own.

Rows that are simply their session's next step are admitted together, as columns; what remains (starts, ends, redos,
resends and whatever is wrong) is checked row by row, in the order of the message.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import (
    ERR_DENIED,
    ERR_INTERNAL,
    ERR_MASK,
    ERR_ORDER,
    ERR_SHAPE,
    ERR_VALUE,
    ProtocolError,
)
from simul.common.protocol.codec import Tensors
from simul.common.protocol.messages import ABORTED, DECISION, FLAGS, RECORD, START, TERMINATED, TRUNCATED, Step
from simul.common.protocol.specs import GameSpec
from simul.inference_server.base.faults import FAULT_TEXT, record_fault
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.batching.batcher import Chunk
from simul.inference_server.serving.refusals import Refusals
from simul.inference_server.sessions.clients import Client
from simul.inference_server.sessions.row_checks import StepRows, unpack_step
from simul.inference_server.sessions.rules import Verdict, check_end, check_start, classify_row
from simul.inference_server.sessions.session_close import SessionCloser, StepRecorder
from simul.inference_server.sessions.table import END_ACKNOWLEDGED, NextSteps, Reply, Session, SessionTable

_CAUSES = {TERMINATED: "terminated", TRUNCATED: "truncated", ABORTED: "aborted"}


@dataclass
class AdmittedRows:
    """Result of a STEP message: chunks that wait, replies that go out now, rows that are refused."""

    chunks: list[Chunk] = field(default_factory=list)
    replies: list[tuple[int, Reply]] = field(default_factory=list)
    refusals: Refusals = field(default_factory=Refusals)


@dataclass
class _Queued:
    """Rows that were admitted one by one."""

    rows: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)  # a later row may end the session and another take its slot
    redo: list[bool] = field(default_factory=list)

    def add(self, row: int, session: Session, redo: bool) -> None:
        self.rows.append(row)
        self.slots.append(session.slot)
        self.numbers.append(session.number)
        self.redo.append(redo)


class PolicyCatalog(Protocol):
    """What admission asks of `simul.inference_server.policies.table.PolicyTable`, which imports torch."""

    def versions(self) -> dict[str, int]:
        """Served versions by name."""

    def source_of(self, name: str) -> str:
        """Where a served policy comes from: learner, league, checkpoint or opponent."""


class StepAdmission:
    """Checks the rows of STEP against the session table; the only place that opens sessions."""

    def __init__(
        self,
        spec: GameSpec,
        sessions: SessionTable,
        policies: PolicyCatalog,
        recorder: StepRecorder,
        session_closer: SessionCloser,
        statistics: Statistics,
    ) -> None:
        self._spec = spec
        self._sessions = sessions
        self._policies = policies
        self._recorder = recorder
        self._session_closer = session_closer
        self._statistics = statistics

    def admit_rows(self, client: Client, message: Step, tensors: Tensors, now: float) -> AdmittedRows:
        """Admit the rows of a STEP message.

        Raises:
            ProtocolError: the message as a whole is wrong (a tensor is missing or has another shape).
        """
        rows = unpack_step(self._spec, tensors, unread=message.observation_at >= 0)
        result, queued = AdmittedRows(), _Queued()
        if rows.label is not None and not client.training:
            raise ProtocolError(ERR_DENIED, "label needs the run's training token; HELLO came without it")
        ordinary = self._sessions.admit_next_steps(client, rows.keys, rows.plain, rows.labelled)
        recordings = self._sessions.recording.take(ordinary.slots)
        self._statistics.steps_seen += int(np.count_nonzero(recordings >= 0))
        self._recorder.add_rewards(
            recordings, rows.reward[ordinary.rows], None if rows.label is None else rows.label[ordinary.rows]
        )
        if len(ordinary.rows) < len(ordinary.which):
            for i in np.flatnonzero(~ordinary.which).tolist():
                try:
                    self._admit_row(client, message, rows, i, queued, result, now)
                except ProtocolError as error:
                    result.refusals.add(error.code, str(error), i)
                except Exception as error:  # noqa: BLE001 a defect costs this row and its session
                    record_fault(error, self._statistics)
                    self._abort(client, rows.keys[i].tolist(), now)
                    result.refusals.add(ERR_INTERNAL, FAULT_TEXT, i)
        result.chunks.extend(self._chunks(client, message, rows, ordinary, queued, now))
        return result

    def abort_sessions_of(self, client: Client, tensors: Tensors, now: float) -> None:
        """Abort every session that a message has rows of: `admit_rows` raised, and its progress is unknown.

        Rows of earlier messages that wait are answered ERR_NO_SESSION by their batch.
        """
        keys = tensors.get("keys")
        if keys is not None and keys.dtype == np.int64 and keys.ndim == 2 and keys.shape[1] == 5:
            for key in keys.tolist():
                self._abort(client, key, now)

    def abort_slots(self, slots: NDArray[np.int64], numbers: NDArray[np.int64], now: float) -> None:
        """Abort the sessions of admitted rows that could not be queued; int64 [M] each, as in `Chunk`."""
        for slot, number in zip(slots.tolist(), numbers.tolist()):
            session = Session(self._sessions, slot)
            if session.number == number:
                self._session_closer.close_session(session, ABORTED, None, "server_fault", now)

    def _abort(self, client: Client, key: list[int], now: float) -> None:
        session = self._sessions.find(client, key[0], key[1])
        if session is not None and session.episode == key[2]:
            self._session_closer.close_session(session, ABORTED, None, "server_fault", now)

    def _chunks(
        self, client: Client, message: Step, rows: StepRows, ordinary: NextSteps, queued: _Queued, now: float
    ) -> Iterator[Chunk]:
        """Admitted rows by policy and by whether they are recorded."""
        table = self._sessions
        _, which, slots = ordinary
        numbers = table.number.take(slots)
        redo = np.zeros(len(slots), np.bool_)
        if queued.rows:
            which, slots = np.concatenate((which, queued.rows)), np.concatenate((slots, queued.slots))
            numbers, redo = np.concatenate((numbers, queued.numbers)), np.concatenate((redo, queued.redo))
        if not len(slots):
            return
        groups = table.group.take(slots)
        everything = Chunk(
            client, message.id, "", False, now, rows.observation, rows.mask, which, slots, numbers, redo,
            unread=rows.unread,
        )  # fmt: skip
        alike = np.count_nonzero(groups == groups[0]) == len(groups)
        kinds = groups[:1].tolist() if alike else np.unique(groups).tolist()
        for group in kinds:
            chunk = everything if alike else everything.pick(groups == group)
            chunk.policy, chunk.recorded = table.policy_of(group), bool(group & 1)
            yield chunk

    def _admit_row(
        self, client: Client, message: Step, rows: StepRows, i: int, queued: _Queued, result: AdmittedRows, now: float
    ) -> None:
        env, seat, episode, step, attempt = rows.keys[i].tolist()
        session = self._sessions.find(client, env, seat)
        if rows.flags[i] > FLAGS:
            raise ProtocolError(ERR_VALUE, f"flags {rows.flags[i]}; expected a sum of 1 START, 2 RECORD and 4 GREEDY")
        rows.check_label(i, unrecorded=session is not None and session.episode == episode and not session.record)
        if rows.kind[i] != DECISION:
            self._end_row(session, rows, i, now)
            result.replies.append((i, END_ACKNOWLEDGED))
            return
        if not rows.finite[i]:
            raise ProtocolError(ERR_VALUE, rows.describe_not_finite(i))
        if not rows.has_legal[i]:
            raise ProtocolError(ERR_MASK, "the mask allows no action, or holds values other than 0 and 1")
        if rows.flags[i] & START and (session is None or session.episode != episode):
            session = self._open(client, message, rows, i, session, now)
        if session is not None and session.episode == episode:
            self._sessions.touch(session, now)
        ending = client.closed_sessions.get((env, seat, episode), "")
        verdict = classify_row(session, (env, seat, episode, step, attempt), ending)
        assert session is not None
        if verdict is Verdict.PENDING and session.slot in queued.slots:
            raise ProtocolError(ERR_ORDER, "this row stands twice in one message; the first one is answered")
        if verdict is Verdict.PENDING:
            self._statistics.rows_duplicate += 1
        elif verdict is Verdict.CACHED:
            self._statistics.rows_cached += 1
            result.replies.append((i, session.reply))
        elif verdict is Verdict.RETRY:
            self._sessions.expired[session.slot] = False
            queued.add(i, session, session.redoing)
        else:
            self._queue(session, rows, i, verdict is Verdict.REDO, queued)

    def _open(self, client: Client, message: Step, rows: StepRows, i: int, old: Session | None, now: float) -> Session:
        env, seat, episode, step, attempt = rows.keys[i].tolist()
        flags = int(rows.flags[i])
        if rows.policy[i] >= len(message.policies):
            raise ProtocolError(ERR_SHAPE, f"policy index {rows.policy[i]} of {len(message.policies)} names")
        policy = message.policies[rows.policy[i]]
        check_start(flags, step, attempt, policy, self._policies.versions().keys())
        if flags & RECORD and self._policies.source_of(policy) in ("checkpoint", "opponent"):
            raise ProtocolError(ERR_DENIED, f"{policy!r} was loaded from a checkpoint: its sessions are not recorded")
        temperature = rows.temperature_of(i)
        if old is not None and episode < old.episode:
            raise ProtocolError(ERR_ORDER, f"episode {episode} is over: episode {old.episode} of this seat is running")
        if old is not None:
            self._session_closer.close_session(old, ABORTED, None, "restarted", now)
        session = self._sessions.open_session(client, env, seat, episode, flags, policy, now)
        self._sessions.temperature[session.slot] = temperature
        if flags & RECORD:
            self._sessions.recording[session.slot] = self._recorder.open_recording()
        return session

    def _queue(self, session: Session, rows: StepRows, i: int, redo: bool, queued: _Queued) -> None:
        step, attempt = rows.keys[i, 3:].tolist()
        if redo:
            self._statistics.rows_redone += 1
        else:
            self._reward(session, rows, i)
        self._sessions.begin_step(session, step, attempt)
        self._statistics.steps_seen += session.record and not redo
        queued.add(i, session, redo)

    def _end_row(self, session: Session | None, rows: StepRows, i: int, now: float) -> None:
        _, _, episode, step, _ = rows.keys[i].tolist()
        kind = int(rows.kind[i])
        if kind not in _CAUSES:
            raise ProtocolError(ERR_VALUE, f"kind {kind}; expected 0 (decision) to 3 (aborted)")
        if session is None or session.episode != episode:
            return  # over already: a resent END, or one that raced with the reaper
        if kind != ABORTED:  # an abort forgets what is open, also a row that was refused
            check_end(session, step)
        final = rows.final_observation(i) if kind == TRUNCATED else None
        if kind == TERMINATED and not math.isfinite(rows.reward[i]):
            raise ProtocolError(ERR_VALUE, "the final reward is not finite")
        if kind != ABORTED:
            self._reward(session, rows, i)
        self._session_closer.close_session(session, kind, final, _CAUSES[kind], now)

    def _reward(self, session: Session, rows: StepRows, i: int) -> None:
        one = slice(i, i + 1)
        label = None if rows.label is None else rows.label[one]
        recordings = self._sessions.recording[session.slot : session.slot + 1]
        self._recorder.add_rewards(recordings, rows.reward[one], label)
