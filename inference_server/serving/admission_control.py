"""Admission control: STEP, EVALUATE and SAMPLES are admitted within the limits and refused at once beyond them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simul.common.errors import (
    ERR_BUSY,
    ERR_DEADLINE,
    ERR_INTERNAL,
    ERR_LIMIT,
    ERR_NOT_READY,
    ProtocolError,
)
from simul.common.protocol.codec import Tensors
from simul.common.protocol.messages import Evaluate, Samples, Step
from simul.common.protocol.specs import GameSpec
from simul.inference_server.base.faults import FAULT_TEXT, record_fault
from simul.inference_server.base.granted_memory import with_observation
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.batching.batcher import Batcher, Chunk
from simul.inference_server.frontend.client_socket import ClientSocket
from simul.inference_server.serving.evaluation import EvaluateRequest, Evaluator
from simul.inference_server.serving.step_admission import StepAdmission
from simul.inference_server.sessions.clients import Client, InFlight
from simul.inference_server.sessions.row_checks import check_request
from simul.inference_server.sessions.table import SessionTable
from simul.inference_server.unrolls.sample_relay import RETRY_AFTER_MS, SampleRelay


class AdmissionControl:
    """Between the client socket and the queues: refuses messages beyond the limits, and hands on the others.

    `StepAdmission` takes STEP, `Evaluator` EVALUATE, `SampleRelay` SAMPLES. `closed`: the server drains and refuses
    every message.
    """

    def __init__(
        self,
        spec: GameSpec,
        client_socket: ClientSocket,
        sessions: SessionTable,
        step_admission: StepAdmission,
        batcher: Batcher,
        evaluator: Evaluator,
        sample_relay: SampleRelay,
        in_flight: InFlight,
        statistics: Statistics,
    ) -> None:
        self.closed = False
        self._spec = spec
        self._client_socket = client_socket
        self._sessions = sessions
        self._step_admission = step_admission
        self._batcher = batcher
        self._evaluator = evaluator
        self._sample_relay = sample_relay
        self._in_flight = in_flight
        self._statistics = statistics

    def admit_message(self, client: Client, message: Step | Evaluate | Samples, tensors: Tensors, now: float) -> None:
        """Admit the rows of a message, or refuse it with an error."""
        try:
            if self.closed:
                raise ProtocolError(ERR_NOT_READY, "the server is shutting down; connect again when it is back")
            check_request(message)
            if isinstance(message, Samples):
                self._samples(client, message, tensors, now)
                return
            rows = _rows(message, tensors)
            if rows > self._in_flight.max_rows_of_message:
                raise ProtocolError(
                    ERR_LIMIT, f"{rows} rows in one message; at most {self._in_flight.max_rows_of_message}"
                )
            if not self._in_flight.has_room(client, rows):
                self._refuse_busy(client, message, rows)
            elif isinstance(message, Step):
                self._step(client, message, tensors, now)
            else:
                request = self._evaluator.admit(client, message, tensors, now)
                self._in_flight.add(client, len(request))
        except ProtocolError as error:
            self._statistics.messages_refused[error.code] += 1
            self._client_socket.refuse(client, message.id, (), error.code, str(error))
        except Exception as error:  # noqa: BLE001 nothing was queued or answered yet, see `_step`
            record_fault(error, self._statistics)
            if isinstance(message, Step):
                self._step_admission.abort_sessions_of(client, tensors, now)
            self._statistics.messages_refused[ERR_INTERNAL] += 1
            self._client_socket.refuse(client, message.id, (), ERR_INTERNAL, FAULT_TEXT)

    def settle(self, batch: Sequence[Chunk | EvaluateRequest]) -> None:
        """The rows of this batch are no longer in flight."""
        for portion in batch:
            self._in_flight.remove(portion.client, len(portion))

    def last_batch_took(self, seconds: float) -> None:
        """Set the duration that `retry_after_ms` is computed from."""
        self._in_flight.last_batch_sec = seconds

    def open_no_sessions(self) -> None:
        """Refuse every START from now on: the server drains."""
        self._sessions.accepting = False

    def refuse_expired(self, now: float) -> None:
        """Refuse rows whose deadline has passed; their sessions stay as they were."""
        for chunk in self._batcher.take_expired(now):
            self._in_flight.remove(chunk.client, len(chunk))
            self._sessions.mark_expired(chunk.slots, chunk.numbers)
            self._statistics.rows_errored[ERR_DEADLINE] += len(chunk)
            late_ms = (now - chunk.deadline) * 1000
            self._client_socket.refuse(
                chunk.client, chunk.message, chunk.rows.tolist(), ERR_DEADLINE,
                f"taken from the queue {late_ms:.0f} ms after the deadline; the session waits for this very step",
                retry_after_ms=self._in_flight.retry_after_ms(),
            )  # fmt: skip

    def _samples(self, client: Client, message: Samples, tensors: Tensors, now: float) -> None:
        if self._sample_relay.has_room(now):
            self._client_socket.send_to(client, self._sample_relay.admit_samples(client, message, tensors, now))
            return
        self._client_socket.refuse(
            client, message.id, (), ERR_BUSY, "the learner has no room for more samples yet. None was admitted; "
            "send them again", retry_after_ms=RETRY_AFTER_MS,
        )  # fmt: skip

    def _step(self, client: Client, message: Step, tensors: Tensors, now: float) -> None:
        if message.observation_at >= 0:
            tensors = with_observation(client.memory, self._spec, message.observation_at, tensors)
        admitted = self._step_admission.admit_rows(client, message, tensors, now)
        deadline = now + message.deadline_ms / 1000 if message.deadline_ms else math.inf
        for chunk in admitted.chunks:
            self._queue(chunk, deadline, now)
        if admitted.replies:
            self._client_socket.reply_again(client, message.id, admitted.replies)
        for code, text, refused in admitted.refusals:
            self._statistics.rows_errored[code] += len(refused)
            self._client_socket.refuse(client, message.id, refused, code, text)

    def _queue(self, chunk: Chunk, deadline: float, now: float) -> None:
        """Queue one chunk; an error refuses only its rows."""
        chunk.deadline = deadline
        try:
            self._batcher.queue_chunk(chunk)
        except Exception as error:  # noqa: BLE001 the batcher appends last: none of these rows waits
            record_fault(error, self._statistics)
            self._step_admission.abort_slots(chunk.slots, chunk.numbers, now)
            self._statistics.rows_errored[ERR_INTERNAL] += len(chunk)
            self._client_socket.refuse(chunk.client, chunk.message, chunk.rows.tolist(), ERR_INTERNAL, FAULT_TEXT)
        else:
            self._in_flight.add(chunk.client, len(chunk))

    def _refuse_busy(self, client: Client, message: Step | Evaluate, rows: int) -> None:
        limits = self._in_flight
        self._statistics.rows_errored[ERR_BUSY] += rows
        self._client_socket.refuse(
            client, message.id, (), ERR_BUSY,
            f"{rows} rows on top of {limits.of(client)} of yours and {limits.total} of all that wait; at most "
            f"{limits.client_limit} of a client, {limits.without_token_limit} of all without the training token and "
            f"{limits.limit} of all may. None was admitted; send them again",
            retry_after_ms=limits.retry_after_ms(),
        )  # fmt: skip


def _rows(message: Step | Evaluate, tensors: Tensors) -> int:
    column = tensors.get("keys" if isinstance(message, Step) else "observation")
    return 0 if column is None or not column.ndim else len(column)
