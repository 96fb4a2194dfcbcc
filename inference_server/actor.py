"""Acts on one batch: gather rows, forward, commit, record, reply."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain
from logging import Logger

import numpy as np

from common import rng
from common.errors import ERR_INTERNAL, ERR_NO_SESSION
from common.messages import ABORTED
from inference_server.admission import Admission
from inference_server.batcher import Chunk
from inference_server.engine.engine import Outputs
from inference_server.gateway import Gateway
from inference_server.policies import PolicyTable
from inference_server.recorder import Recorder
from inference_server.sessions import Reply, Session, SessionTable
from inference_server.statistics import Statistics


class Actor:
    """One batch is of one policy and one policy_version; a session appears in it once."""

    def __init__(
        self,
        policies: PolicyTable,
        sessions: SessionTable,
        recorder: Recorder,
        admission: Admission,
        gateway: Gateway,
        statistics: Statistics,
        log: Logger,
        *,
        zero_state: bool,
    ) -> None:
        self._policies = policies
        self._sessions = sessions
        self._recorder = recorder
        self._admission = admission
        self._gateway = gateway
        self._statistics = statistics
        self._log = log
        self._zero_state = zero_state

    def act(self, batch: list[Chunk], now: float) -> None:
        """Forward a batch and answer it. Rows whose session ended meanwhile are left out."""
        for chunk in batch:
            self._leave_out_ended(chunk)
        batch = [chunk for chunk in batch if chunk.rows]
        if not batch:
            return
        policy = self._policies[batch[0].policy]
        engine, zero_row = policy.engine, policy.engine.zero_row
        sessions = list(chain.from_iterable(chunk.sessions for chunk in batch))
        redo = np.fromiter(chain.from_iterable(chunk.redo for chunk in batch), bool, len(sessions))
        observation = np.concatenate([chunk.observation[chunk.rows] for chunk in batch])
        mask = np.concatenate([chunk.mask[chunk.rows] for chunk in batch])
        pairs = list(zip(sessions, redo.tolist()))
        read_rows = np.array([session.read_row(again, zero_row) for session, again in pairs], np.int64)
        write_rows = np.array([session.write_row(again) for session, again in pairs], np.int64)
        if self._zero_state:
            read_rows[:] = zero_row
        begin = time.perf_counter()
        try:
            outputs = engine.act(observation, mask, read_rows, write_rows, _noise(sessions, mask.shape[1]))
        except RuntimeError as error:
            self._fail(batch, error, now)
            return
        self._statistics.batch(len(sessions), time.perf_counter() - begin)
        replies = list(_replies(outputs, policy.version))
        for (session, again), reply in zip(pairs, replies):
            self._sessions.commit_step(session, again, reply)
        self._recorder.append(
            sessions, redo, observation, mask, read_rows, outputs, engine, policy.version, now
        )  # fmt: skip
        self._reply(batch, replies)

    def _reply(self, batch: list[Chunk], replies: list[Reply]) -> None:
        start = 0
        answered_at = time.monotonic()
        for chunk in batch:
            end = start + len(chunk.rows)
            self._gateway.reply(chunk.client, chunk.message, chunk.rows, replies[start:end])
            self._statistics.latency_us.add((answered_at - chunk.arrived_at) * 1e6, end - start)
            start = end

    def _leave_out_ended(self, chunk: Chunk) -> None:
        """Every row is answered: those whose session ended while they waited, with an error."""
        ended = [row for row, session in zip(chunk.rows, chunk.sessions) if not session.alive]
        if not ended:
            return
        self._statistics.rows_errored[ERR_NO_SESSION] += len(ended)
        self._gateway.refuse(chunk.client, chunk.message, ended, ERR_NO_SESSION, "the session ended before this step")
        kept = [i for i, session in enumerate(chunk.sessions) if session.alive]
        chunk.rows = [chunk.rows[i] for i in kept]
        chunk.sessions = [chunk.sessions[i] for i in kept]
        chunk.redo = [chunk.redo[i] for i in kept]

    def _fail(self, batch: list[Chunk], error: RuntimeError, now: float) -> None:
        self._log.error("a forward of %d rows failed: %s", sum(len(chunk.rows) for chunk in batch), error)
        for chunk in batch:
            self._statistics.rows_errored[ERR_INTERNAL] += len(chunk.rows)
            self._gateway.refuse(chunk.client, chunk.message, chunk.rows, ERR_INTERNAL, "the forward failed")
            for session in chunk.sessions:
                self._admission.end(session, ABORTED, None, "forward_failed", now)


def _noise(sessions: list[Session], num_actions: int) -> np.ndarray:
    n = len(sessions)
    noise = rng.gumbel(
        np.array([session.noise_key for session in sessions], np.uint64),
        np.fromiter((session.step for session in sessions), np.uint64, n),
        np.fromiter((session.attempt for session in sessions), np.uint64, n),
        num_actions,
    )
    noise[[session.greedy for session in sessions]] = 0.0
    return noise


def _replies(outputs: Outputs, version: int) -> Iterator[Reply]:
    for action, log_prob, value in zip(outputs.action.tolist(), outputs.log_prob.tolist(), outputs.value.tolist()):
        yield action, log_prob, value, version
