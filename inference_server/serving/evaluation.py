"""EVALUATE: policy and value without acting. No session moves; states are read, never written."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import ERR_INTERNAL, ERR_MASK, ERR_POLICY, ERR_VALUE, ProtocolError
from simul.common.protocol.codec import Tensors
from simul.common.protocol.messages import Evaluate, Evaluated
from simul.common.protocol.specs import GameSpec
from simul.inference_server.base.faults import FAULT_TEXT, record_fault
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.batching.batcher import FairQueue
from simul.inference_server.engine.engine import DeviceLost
from simul.inference_server.frontend.client_socket import ClientSocket
from simul.inference_server.policies.table import PolicyTable
from simul.inference_server.serving.bisect_failure import (
    FAILED,
    NOT_FINITE,
    describe_not_finite_result,
    split_in_halves,
)
from simul.inference_server.serving.refusals import Refusals
from simul.inference_server.sessions.clients import Client
from simul.inference_server.sessions.row_checks import unpack_evaluate
from simul.inference_server.sessions.table import SessionTable

STEPS_BETWEEN = 4  # while evaluations wait, at most so many batches of steps go before one of theirs: a fifth


@dataclass(eq=False, slots=True)
class EvaluateRequest:
    """Rows of one EVALUATE message that wait. `rows` index into the message's tensors.

    observation: wire dtype [N, D]; bits: uint8 [N, ceil(A / 8)], packed masks; legal: int64 [N], legal actions of each
    row; session: int64 [N, 3], env -1: zero state.
    """

    client: Client
    message: int
    policy: str
    arrived_at: float
    observation: NDArray[Any]
    bits: NDArray[np.uint8]
    legal: NDArray[np.int64]
    session: NDArray[np.int64]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def pick(self, which: slice | NDArray[np.bool_]) -> EvaluateRequest:
        """A request with only these rows."""
        return dataclasses.replace(self, rows=self.rows[which])


class Evaluator:
    """A queue for each policy, and the forward that answers it."""

    def __init__(
        self,
        spec: GameSpec,
        sessions: SessionTable,
        policies: PolicyTable,
        client_socket: ClientSocket,
        statistics: Statistics,
        max_batch: int,
    ) -> None:
        self.waiting = 0  # rows
        self._spec = spec
        self._sessions = sessions
        self._policies = policies
        self._client_socket = client_socket
        self._statistics = statistics
        self._max_batch = max_batch
        self._queues: dict[str, FairQueue[EvaluateRequest]] = {}
        self._steps_since = 0

    def admit(self, client: Client, message: Evaluate, tensors: Tensors, now: float) -> EvaluateRequest:
        """Check an EVALUATE message, refuse its bad rows, queue the others.

        Raises:
            ProtocolError: the message as a whole is wrong.
        """
        if message.policy not in self._policies.versions():
            known = ", ".join(self._policies.names)
            raise ProtocolError(ERR_POLICY, f"policy {message.policy[:40]!r} is not served; served are: {known}")
        observation, bits, session, finite, within = unpack_evaluate(self._spec, tensors)
        legal = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
        for wrong, code, text in (
            (~finite, ERR_VALUE, "the observation is not finite"),
            (finite & ~within, ERR_MASK, f"the mask has bits beyond those of the {self._spec.num_actions} actions"),
            (finite & within & (legal == 0), ERR_MASK, "the mask allows no action"),
        ):
            self._refuse(client, message.id, np.flatnonzero(wrong), code, text)
        rows = np.flatnonzero(finite & within & (legal > 0))
        request = EvaluateRequest(client, message.id, message.policy, now, observation, bits, legal, session, rows)
        if len(rows):
            self._queues.setdefault(message.policy, FairQueue()).append(request)
            self.waiting += len(rows)
        return request

    def has_turn(self, steps_wait: bool) -> bool:
        """True if the next batch is one of evaluations: steps go first, but a fifth of the batches are evaluations."""
        if not self.waiting:
            self._steps_since = 0
            return False
        if steps_wait and self._steps_since < STEPS_BETWEEN:
            self._steps_since += 1
            return False
        self._steps_since = 0
        return True

    def act(self) -> list[EvaluateRequest]:
        """Evaluate and answer one batch of one policy, the one whose oldest row waited longest. Returns the batch."""
        name = min((name for name, queue in self._queues.items() if queue), key=lambda name: self._queues[name].oldest)
        known = name in self._policies.versions()
        room = min(self._max_batch, self._policies[name].engine.largest_batch) if known else self._max_batch
        batch = self._queues[name].take_rows(room)
        self.waiting -= sum(map(len, batch))
        if not self._queues[name]:
            del self._queues[name]
        for request in batch:
            if not known:
                self._refuse(request.client, request.message, request.rows, ERR_POLICY, f"{name!r} is no longer served")
        if known:
            self._forward(name, batch)
        return batch

    def _forward(self, name: str, batch: list[EvaluateRequest]) -> None:
        policy = self._policies[name]
        batch, states = self._find_states(batch, policy.engine.zero_row)
        if not batch:
            return
        try:
            priors, value = policy.engine.evaluate(
                np.concatenate([request.observation[request.rows] for request in batch]),
                np.concatenate([request.bits[request.rows] for request in batch]),
                states,
            )
        except DeviceLost:
            raise
        except Exception as error:  # noqa: BLE001 a user's network may raise anything
            self._bisect(name, batch, error)
            return
        self._statistics.evaluation_batches += 1
        counts = np.concatenate([request.legal[request.rows] for request in batch])
        first = np.cumsum(counts) - counts
        finite = np.isfinite(value) & np.logical_and.reduceat(np.isfinite(priors), first)
        start = 0
        for request in batch:
            part = slice(start, start + len(request))
            own = priors[first[start] : first[part.stop - 1] + counts[part.stop - 1]]
            try:
                self._answer(request, own, value[part], finite[part], policy.version)
            except Exception as error:  # noqa: BLE001 a defect costs this message
                record_fault(error, self._statistics)
                self._refuse(request.client, request.message, request.rows, ERR_INTERNAL, FAULT_TEXT)
            start = part.stop

    def _answer(
        self,
        request: EvaluateRequest,
        priors: NDArray[np.float32],
        value: NDArray[np.float32],
        finite: NDArray[np.bool_],
        version: int,
    ) -> None:
        """Answer the rows whose result is finite, refuse the others: float32 [K] and [M], bool [M]."""
        if not finite.all():
            refused = request.rows[~finite]
            self._statistics.forward_failed(len(refused), NOT_FINITE)
            text = describe_not_finite_result(request.observation[refused])
            self._refuse(request.client, request.message, refused, ERR_INTERNAL, text)
            priors = priors[np.repeat(finite, request.legal[request.rows])]
            request, value = request.pick(finite), value[finite]
        if len(request):
            self._statistics.evaluations += len(request)
            self._reply(request, priors, value, version)

    def _bisect(self, name: str, batch: list[EvaluateRequest], error: Exception) -> None:
        """A forward raised: only the row that makes it raise alone is refused."""
        first, second = split_in_halves(batch)
        if first:
            self._forward(name, first)
            self._forward(name, second)
            return
        (request,) = second
        self._statistics.forward_failed(len(request), str(error))
        self._refuse(request.client, request.message, request.rows, ERR_INTERNAL, FAILED)

    def _find_states(
        self, batch: list[EvaluateRequest], zero_row: int
    ) -> tuple[list[EvaluateRequest], NDArray[np.int64]]:
        """The rows that can be evaluated, and the rows of the state table that they read, int64 [B]."""
        found, states = [], []
        for request in batch:
            kept, refusals = [], Refusals()
            for row in request.rows.tolist():
                env, seat, episode = request.session[row].tolist()
                try:
                    state = zero_row
                    if env >= 0:
                        state = self._sessions.state_row(request.client, env, seat, episode, request.policy)
                except ProtocolError as error:
                    refusals.add(error.code, str(error), row)
                except Exception as error:  # noqa: BLE001 a defect costs this row
                    record_fault(error, self._statistics)
                    refusals.add(ERR_INTERNAL, FAULT_TEXT, row)
                else:
                    kept.append(row)
                    states.append(state)
            for code, text, refused in refusals:
                self._refuse(request.client, request.message, refused, code, text)
            if kept:
                found.append(dataclasses.replace(request, rows=np.array(kept, np.int64)))
        return found, np.array(states, np.int64)

    def _reply(
        self, request: EvaluateRequest, priors: NDArray[np.float32], value: NDArray[np.float32], version: int
    ) -> None:
        tensors = {
            "row": request.rows.astype(np.int32),
            "value": value,
            "priors": priors,
        }
        self._client_socket.send_to(request.client, Evaluated(id=request.message, policy_version=version), tensors)

    def _refuse(self, client: Client, message: int, rows: Iterable[int], code: str, text: str) -> None:
        refused = [int(row) for row in rows]
        if refused:
            self._statistics.rows_errored[code] += len(refused)
            self._client_socket.refuse(client, message, refused, code, text)
