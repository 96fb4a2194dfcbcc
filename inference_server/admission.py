"""Admits the rows of a STEP message: each becomes a waiting row, an immediate reply, or an error of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.codec import Tensors, expect
from common.errors import ERR_LIMIT, ERR_MASK, ERR_ORDER, ERR_SHAPE, ERR_VALUE, ProtocolError
from common.messages import ABORTED, DECISION, RECORD, START, TERMINATED, TRUNCATED, Step
from common.specs import GameSpec
from inference_server.batcher import Chunk
from inference_server.clients import Client
from inference_server.policies import PolicyTable
from inference_server.recorder import Recorder
from inference_server.sessions import END_ACKNOWLEDGED, Reply, Session, SessionTable, Verdict, check_end, check_start
from inference_server.statistics import Statistics

MAX_ROWS = 4096
_CAUSES = {TERMINATED: "terminated", TRUNCATED: "truncated", ABORTED: "aborted"}


@dataclass
class Admitted:
    """What became of a STEP message: chunks that wait, replies that go out now, errors by (code, text)."""

    chunks: list[Chunk] = field(default_factory=list)
    replies: list[tuple[int, Reply]] = field(default_factory=list)
    errors: dict[tuple[str, str], list[int]] = field(default_factory=dict)


@dataclass
class _Rows:
    keys: list[list[int]]
    kind: list[int]
    flags: list[int]
    reward: list[float]
    policy: list[int]
    observation: NDArray[Any]
    mask: NDArray[np.uint8]
    finite: list[bool]
    has_legal: list[bool]


class Admission:
    """Checks rows against the session table; the only place that opens and ends sessions."""

    def __init__(
        self, spec: GameSpec, sessions: SessionTable, policies: PolicyTable, recorder: Recorder, statistics: Statistics
    ) -> None:
        self._spec = spec
        self._sessions = sessions
        self._policies = policies
        self._recorder = recorder
        self._statistics = statistics

    def admit(self, client: Client, message: Step, tensors: Tensors, now: float) -> Admitted:
        """Take in a whole STEP message.

        Raises:
            ProtocolError: the message as a whole is wrong (a tensor is missing or has another shape).
        """
        rows = self._unpack(message, tensors)
        result = Admitted()
        chunks: dict[tuple[str, bool], Chunk] = {}
        for i, key in enumerate(rows.keys):
            try:
                self._admit_row(client, message, rows, i, key, chunks, result, now)
            except ProtocolError as error:
                self._statistics.rows_errored[error.code] += 1
                result.errors.setdefault((error.code, str(error)), []).append(i)
        result.chunks = list(chunks.values())
        return result

    def end(self, session: Session, kind: int, final: NDArray[Any] | None, cause: str, now: float) -> None:
        """End a session, whoever asks for it; the slot is freed once."""
        if self._sessions.end(session):
            self._recorder.end(session, kind, final, cause, now)
            self._statistics.sessions_ended[cause] += 1

    def _admit_row(
        self,
        client: Client,
        message: Step,
        rows: _Rows,
        i: int,
        key: list[int],
        chunks: dict[tuple[str, bool], Chunk],
        result: Admitted,
        now: float,
    ) -> None:
        env, seat, episode, step, attempt = key
        session = self._sessions.find(client, env, seat)
        if rows.kind[i] != DECISION:
            self._end_row(session, rows, i, now)
            result.replies.append((i, END_ACKNOWLEDGED))
            return
        if not rows.finite[i]:
            raise ProtocolError(ERR_VALUE, "the observation or the reward holds values that are not finite")
        if not rows.has_legal[i]:
            raise ProtocolError(ERR_MASK, "the mask allows no action, or holds values other than 0 and 1")
        if rows.flags[i] & START and (session is None or session.episode != episode):
            session = self._open(client, message, rows, i, session, now)
        verdict = self._sessions.judge(session, (env, seat, episode, step, attempt), now)
        assert session is not None
        if verdict is Verdict.PENDING:
            self._statistics.rows_duplicate += 1
        elif verdict is Verdict.CACHED:
            self._statistics.rows_cached += 1
            result.replies.append((i, session.reply))
        else:
            self._queue(client, message, rows, i, session, verdict is Verdict.REDO, chunks, now)

    def _open(self, client: Client, message: Step, rows: _Rows, i: int, old: Session | None, now: float) -> Session:
        env, seat, episode, step, attempt = rows.keys[i]
        if rows.policy[i] >= len(message.policies):
            raise ProtocolError(ERR_SHAPE, f"policy index {rows.policy[i]} of {len(message.policies)} names")
        policy = message.policies[rows.policy[i]]
        check_start(rows.flags[i], step, attempt, policy, self._policies.versions().keys())
        if old is not None and episode < old.episode:
            raise ProtocolError(ERR_ORDER, f"episode {episode} is over: episode {old.episode} of this seat is running")
        if old is not None:
            self.end(old, ABORTED, None, "restarted", now)
        session = self._sessions.open(client, env, seat, episode, rows.flags[i], policy, now)
        if rows.flags[i] & RECORD:
            self._recorder.open(session)
        return session

    def _queue(
        self,
        client: Client,
        message: Step,
        rows: _Rows,
        i: int,
        session: Session,
        redo: bool,
        chunks: dict[tuple[str, bool], Chunk],
        now: float,
    ) -> None:
        _, _, _, step, attempt = rows.keys[i]
        if redo:
            self._statistics.rows_redone += 1
        else:
            self._recorder.reward(session, rows.reward[i])
            self._statistics.steps_seen += session.record
        self._sessions.begin_step(session, step, attempt, redo)
        chunk = chunks.get((session.policy, session.record))
        if chunk is None:
            chunk = Chunk(
                client, message.id, session.policy, session.record, now, rows.observation, rows.mask, [], [], []
            )
            chunks[session.policy, session.record] = chunk
        chunk.rows.append(i)
        chunk.sessions.append(session)
        chunk.redo.append(redo)

    def _end_row(self, session: Session | None, rows: _Rows, i: int, now: float) -> None:
        _, _, episode, step, _ = rows.keys[i]
        kind = rows.kind[i]
        if kind not in _CAUSES:
            raise ProtocolError(ERR_VALUE, f"kind {kind}; expected 0 (decision) to 3 (aborted)")
        if session is None or session.episode != episode:
            return  # over already: a resent END, or one that raced with the reaper
        if kind != ABORTED:  # an abort forgets what is open, also a row that was refused
            check_end(session, step)
        if kind == TRUNCATED and not rows.finite[i]:
            raise ProtocolError(ERR_VALUE, "the final observation or the reward holds values that are not finite")
        if kind == TERMINATED and not math.isfinite(rows.reward[i]):
            raise ProtocolError(ERR_VALUE, "the final reward is not finite")
        if kind != ABORTED:
            self._recorder.reward(session, rows.reward[i])
        self.end(session, kind, rows.observation[i], _CAUSES[kind], now)

    def _unpack(self, message: Step, tensors: Tensors) -> _Rows:
        spec = self._spec
        keys = expect(tensors, "keys", "int64", (None, 5))
        n = len(keys)
        if n > MAX_ROWS:
            raise ProtocolError(ERR_LIMIT, f"{n} rows in one STEP; at most {MAX_ROWS}")
        observation = expect(tensors, "observation", spec.dtype(), (n, spec.observation_size))
        mask = expect(tensors, "mask", "uint8", (n, spec.num_actions))
        reward = expect(tensors, "reward", "float32", (n,))
        finite = np.isfinite(observation).all(axis=1) & np.isfinite(reward)
        return _Rows(
            keys=keys.tolist(),
            kind=expect(tensors, "kind", "uint8", (n,)).tolist(),
            flags=expect(tensors, "flags", "uint8", (n,)).tolist(),
            reward=reward.tolist(),
            policy=expect(tensors, "policy", "uint8", (n,)).tolist(),
            observation=observation,
            mask=mask,
            finite=finite.tolist(),
            has_legal=(mask.max(axis=1, initial=0) == 1).tolist(),
        )
