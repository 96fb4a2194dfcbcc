"""Acts on one batch: gather rows, forward, reply, commit, record. Whole columns at a time."""

from __future__ import annotations

import time
from logging import Logger
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import ERR_INTERNAL, ERR_NO_SESSION, ERR_VALUE
from simul.common.protocol.messages import ABORTED
from simul.inference_server.base.faults import FAULT_TEXT, record_fault
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.batching.batcher import Chunk
from simul.inference_server.engine.engine import DeviceLost, Outputs, Staging
from simul.inference_server.engine.sampling import all_finite, draw_gumbel, which_finite
from simul.inference_server.frontend.client_socket import ClientSocket
from simul.inference_server.policies.table import NamedPolicy, PolicyTable
from simul.inference_server.serving.bisect_failure import (
    FAILED,
    NOT_FINITE,
    describe_not_finite_result,
    split_in_halves,
)
from simul.inference_server.serving.gather_rows import gather_rows
from simul.inference_server.sessions.row_checks import describe_not_finite
from simul.inference_server.sessions.session_close import SessionCloser
from simul.inference_server.sessions.table import Session, SessionTable
from simul.inference_server.unrolls.recorder import Recorder


class ForwardResult(NamedTuple):
    """Inputs and outputs of a forward, by row; the arrays of `Staging` [B or more], the others [B]."""

    slots: NDArray[np.int64]
    redo: NDArray[np.bool_]
    write_rows: NDArray[np.int64]
    read_rows: NDArray[np.int64]
    observation: NDArray[Any]
    mask: NDArray[np.uint8]
    outputs: Outputs

    def pick(self, which: NDArray[np.bool_]) -> ForwardResult:
        """These rows only, copied. bool [B]."""
        rows, outputs = np.flatnonzero(which), self.outputs
        return ForwardResult(
            self.slots[rows], self.redo[rows], self.write_rows[rows], self.read_rows[rows], self.observation[rows],
            self.mask[rows], Outputs(outputs.action[rows], outputs.log_prob[rows], outputs.value[rows]),
        )  # fmt: skip


class Actor:
    """One batch is of one policy and one policy_version; a session appears in it once."""

    def __init__(
        self,
        policies: PolicyTable,
        sessions: SessionTable,
        recorder: Recorder,
        session_closer: SessionCloser,
        client_socket: ClientSocket,
        statistics: Statistics,
        log: Logger,
        *,
        zero_state: bool,
    ) -> None:
        self._policies = policies
        self._sessions = sessions
        self._recorder = recorder
        self._session_closer = session_closer
        self._client_socket = client_socket
        self._statistics = statistics
        self._log = log
        self._zero_state = zero_state

    def act(self, batch: list[Chunk], now: float) -> float:
        """Forward a batch and answer it. Rows whose session ended meanwhile are left out.

        Returns:
            Seconds that the forward took, sampling included; 0 where there was none.
        """
        try:
            return self._act(batch, now)
        except Exception as error:  # noqa: BLE001 a defect costs the rows of the batch that are not answered
            self._give_up(batch, error, now, answered=False)
            return 0.0

    def _act(self, batch: list[Chunk], now: float) -> float:
        batch = self._drop_ended(batch)
        if not batch:
            return 0.0
        policy, stages = self._policies[batch[0].policy], self._statistics.stages
        try:
            staging, finite = self._gather(batch, policy)
            if np.count_nonzero(finite) < len(finite):
                batch, staging = self._refuse_bad_copies(batch, staging, finite, policy)
                if not batch:
                    return 0.0
            slots = np.concatenate([chunk.slots for chunk in batch])
            redo = np.concatenate([chunk.redo for chunk in batch])
            n = len(slots)
            self._find_states(staging, slots, redo, policy)
            stages.lap("gather")
            table = self._sessions
            draw_gumbel(slots, table.noise_key, table.due, table.attempt, table.greedy, staging.legal, staging.noise)
            seconds = stages.lap("sample")
            policy.engine.forward(n)
            seconds += stages.lap("forward")
            outputs = policy.engine.sample()
        except DeviceLost:
            raise
        except Exception as error:  # noqa: BLE001 a user's network may raise anything
            return self._bisect(batch, error, now)
        seconds += stages.lap("sample")
        result = ForwardResult(
            slots, redo, staging.write_rows, staging.read_rows, staging.observation, staging.mask, outputs
        )
        if not all_finite(outputs.log_prob, outputs.value):
            batch, result = self._refuse_not_finite(batch, result, now)
        self._statistics.batch(n, len(result.slots), seconds)
        if batch:
            self._finish(batch, result, policy, now)
        return seconds

    def _finish(self, batch: list[Chunk], result: ForwardResult, policy: NamedPolicy, now: float) -> None:
        """Send the replies, commit the new states, record the steps."""
        stages, outputs = self._statistics.stages, result.outputs
        self._reply(batch, outputs, policy.version)  # first: clients go on while the rest is written down
        stages.lap("reply")
        try:
            self._sessions.commit(
                result.slots, result.write_rows, outputs.action, outputs.log_prob, outputs.value, policy.version, now
            )
            self._record(batch, result, policy, now)
        except Exception as error:  # noqa: BLE001 a defect costs the sessions of the batch
            self._give_up(batch, error, now, answered=True)
        stages.lap("record")

    def _give_up(self, batch: list[Chunk], error: Exception, now: float, *, answered: bool) -> None:
        """Close the live sessions of a batch on which the server failed; refuse their rows, if not `answered`."""
        record_fault(error, self._statistics)
        for chunk in batch:
            chunk = chunk.pick(self._sessions.number.take(chunk.slots) == chunk.numbers)
            if len(chunk) and not answered:
                self._refuse(chunk, FAULT_TEXT, "server_fault", now)
            elif len(chunk):
                self._end(chunk, "server_fault", now)
        self._recorder.balance_account(self._sessions.count_pending_recorded())

    def _refuse_not_finite(
        self, batch: list[Chunk], result: ForwardResult, now: float
    ) -> tuple[list[Chunk], ForwardResult]:
        """Refuse the rows whose result is not finite. The others, in the same order, are answered as they are.

        A session that is refused is ended before anything of its row is committed or recorded.
        """
        finite = which_finite(result.outputs.log_prob, result.outputs.value)
        failed = int(np.count_nonzero(~finite))
        self._log.error("%s in %d of %d rows of a batch", NOT_FINITE, failed, len(finite))
        self._statistics.forward_failed(failed, NOT_FINITE)
        kept, start = [], 0
        for chunk in batch:
            part = slice(start, start + len(chunk))
            fine, start = finite[part], part.stop
            if not fine.all():
                self._refuse(
                    chunk.pick(~fine),
                    describe_not_finite_result(result.observation[part][~fine]),
                    "forward_failed",
                    now,
                )
                chunk = chunk.pick(fine)
            if len(chunk):
                kept.append(chunk)
        return kept, result.pick(finite)

    def _bisect(self, batch: list[Chunk], error: Exception, now: float) -> float:
        """A forward raised: act on each half; the row that makes it raise alone gets the error, and only that one."""
        first, second = split_in_halves(batch)
        if first:
            return self.act(first, now) + self.act(second, now)
        (chunk,) = second
        self._log.error("the forward of one row failed: %s", error)
        self._statistics.forward_failed(len(chunk), str(error))
        self._refuse(chunk, FAILED, "forward_failed", now)
        return 0.0

    def _refuse(self, chunk: Chunk, text: str, cause: str, now: float) -> None:
        self._statistics.rows_errored[ERR_INTERNAL] += len(chunk)
        self._client_socket.refuse(chunk.client, chunk.message, chunk.rows.tolist(), ERR_INTERNAL, text)
        self._end(chunk, cause, now)

    def _end(self, chunk: Chunk, cause: str, now: float) -> None:
        for slot in chunk.slots.tolist():
            self._session_closer.close_session(Session(self._sessions, slot), ABORTED, None, cause, now)

    def _gather(self, batch: list[Chunk], policy: NamedPolicy) -> tuple[Staging, NDArray[np.bool_]]:
        """Copy observations and masks into staging. From here on only the copies are read.

        Returns:
            The staged rows, and bool [B], True = the observation is finite. Those of a message were found so before;
            its client may have written others into shared memory since.
        """
        n, start = sum(map(len, batch)), 0
        staging, finite = policy.engine.stage(n), np.empty(n, np.bool_)
        for chunk in batch:
            part = slice(start, start + len(chunk))
            gather_rows(
                chunk.observation, chunk.mask, chunk.rows,
                staging.observation[part], staging.mask[part], finite[part],
            )  # fmt: skip
            start = part.stop
        return staging, finite

    def _refuse_bad_copies(
        self, batch: list[Chunk], staging: Staging, finite: NDArray[np.bool_], policy: NamedPolicy
    ) -> tuple[list[Chunk], Staging]:
        """Refuse the rows copied out of shared memory that are not `finite`. Returns the others, staged.

        Their sessions wait for the same row, as after a deadline.
        """
        n, kept, start = len(finite), [], 0
        for chunk in batch:
            part = slice(start, start + len(chunk))
            fine, start = finite[part], part.stop
            if not fine.all():
                self._refuse_copies(chunk.pick(~fine), staging.observation[part][~fine])
                chunk = chunk.pick(fine)
            if len(chunk):
                kept.append(chunk)
        observation, mask = staging.observation[:n][finite], staging.mask[:n][finite]
        staging.observation[:n] = 0  # rows that a batch leaves free hold finite numbers
        if kept:
            staging = policy.engine.stage(len(observation))
            staging.observation[: len(observation)], staging.mask[: len(observation)] = observation, mask
        return kept, staging

    def _refuse_copies(self, chunk: Chunk, observation: NDArray[Any]) -> None:
        """observation: the copies of the chunk's rows, [M, D]."""
        self._sessions.mark_expired(chunk.slots, chunk.numbers)
        self._statistics.rows_errored[ERR_VALUE] += len(chunk)
        by_text: dict[str, list[int]] = {}
        for row, copied in zip(chunk.rows.tolist(), observation):
            by_text.setdefault(describe_not_finite(copied), []).append(row)
        for text, rows in by_text.items():
            self._client_socket.refuse(chunk.client, chunk.message, rows, ERR_VALUE, text)

    def _find_states(
        self, staging: Staging, slots: NDArray[np.int64], redo: NDArray[np.bool_], policy: NamedPolicy
    ) -> None:  # fmt: skip
        n = len(slots)
        self._sessions.find_state_rows(slots, redo, staging.read_rows, staging.write_rows)
        if self._zero_state:
            staging.read_rows[:n] = policy.engine.zero_row
        staging.temperature[:n] = self._sessions.temperature.take(slots)

    def _record(self, batch: list[Chunk], result: ForwardResult, policy: NamedPolicy, now: float) -> None:
        """Recorded rows stand first in a batch."""
        k = sum(len(chunk) for chunk in batch if chunk.recorded)
        if k:
            outputs = result.outputs
            first = Outputs(outputs.action[:k], outputs.log_prob[:k], outputs.value[:k])
            self._recorder.append_steps(
                self._sessions.recording.take(result.slots[:k]), result.redo[:k], result.observation[:k],
                result.mask[:k], result.read_rows[:k], first, policy.engine, policy.version, now,
            )  # fmt: skip

    def _reply(self, batch: list[Chunk], outputs: Outputs, version: int) -> None:
        versions = np.full(len(outputs.action), version)
        answered_at, start = time.monotonic(), 0
        for chunk in batch:
            part = slice(start, start + len(chunk))
            self._client_socket.reply(
                chunk.client, chunk.message, chunk.rows,
                outputs.action[part], outputs.log_prob[part], outputs.value[part], versions[part],
            )  # fmt: skip
            self._statistics.latency_us.add((answered_at - chunk.arrived_at) * 1e6, len(chunk))
            start = part.stop

    def _drop_ended(self, batch: list[Chunk]) -> list[Chunk]:
        """Every row is answered: those whose session ended while they waited, with an error. Recorded rows first."""
        living = []
        for chunk in sorted(batch, key=lambda chunk: not chunk.recorded):
            alive = self._sessions.number.take(chunk.slots) == chunk.numbers
            if np.count_nonzero(alive) < len(chunk):
                ended = chunk.rows[~alive].tolist()
                self._statistics.rows_errored[ERR_NO_SESSION] += len(ended)
                self._client_socket.refuse(
                    chunk.client, chunk.message, ended, ERR_NO_SESSION, "the session ended before this step"
                )
                chunk = chunk.pick(alive)
            if len(chunk):
                living.append(chunk)
        return living
