"""An inference client for columns of rows: hundreds of envs in one process, without a Python object per row.

    client = ColumnClient(endpoint, name="my-farm", spec=spec)
    client.connect()
    number = client.submit(columns)          # one STEP message
    for answer in client.poll():             # never blocks; an answer holds rows of one message
        actions[answer.rows] = answer.action

It pings, but neither resends nor reconnects; `InferenceClient` does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.client.connection import ServerConnection
from simul.common.errors import InferenceError
from simul.common.protocol.codec import expect
from simul.common.protocol.messages import LEARNER_POLICY, Actions, Error, Step, Welcome
from simul.common.protocol.specs import GameSpec
from simul.common.transport import ClientKeys

_ANSWER = (("action", "int32"), ("log_prob", "float32"), ("value", "float32"), ("policy_version", "int64"))


@dataclass
class Columns:
    """Rows of a STEP message, see `simul.common.protocol.messages.Step`: N rows, D numbers an observation, A actions.

    keys: int64 [N, 5]; kind, flags, policy: uint8 [N]; reward: float32 [N]; observation: wire dtype [N, D];
    mask: uint8 [N, A]. The arrays may be reused as soon as `submit` has returned.
    """

    keys: NDArray[np.int64]
    kind: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    reward: NDArray[np.float32]
    observation: NDArray[Any]
    mask: NDArray[np.uint8]
    policy: NDArray[np.uint8]

    @classmethod
    def empty(cls, rows: int, spec: GameSpec) -> Columns:
        """Decisions with every action legal and everything else 0."""
        return cls(
            keys=np.zeros((rows, 5), np.int64),
            kind=np.zeros(rows, np.uint8),
            flags=np.zeros(rows, np.uint8),
            reward=np.zeros(rows, np.float32),
            observation=np.zeros((rows, spec.observation_size), spec.dtype()),
            mask=np.ones((rows, spec.num_actions), np.uint8),
            policy=np.zeros(rows, np.uint8),
        )


class Answer(NamedTuple):
    """Answered rows of message `id`; arrays [M], see `simul.common.protocol.messages.Actions`."""

    id: int
    rows: NDArray[np.int32]
    action: NDArray[np.int32]
    log_prob: NDArray[np.float32]
    value: NDArray[np.float32]
    policy_version: NDArray[np.int64]


class ColumnClient:
    """A client of the inference socket. Not thread-safe; only `connect` blocks."""

    def __init__(
        self,
        endpoint: str,
        *,
        name: str,
        spec: GameSpec,
        run_id: int = 0,
        training_token: str = "",
        keys: ClientKeys | None = None,
    ) -> None:
        self.refusals: list[Error] = []  # refusals of the server; the caller empties the list
        self.policies: tuple[str, ...] = ()
        self._spec = spec
        self._connection = ServerConnection(
            endpoint, name=name, spec=spec, run_id=run_id, training_token=training_token, keys=keys
        )
        self.poller = self._connection.poller
        self._next_id = 0
        self._owed: dict[int, int] = {}  # unanswered rows, by message id

    def connect(self, timeout_sec: float = 10.0) -> None:
        """Send HELLO and wait for WELCOME.

        Raises:
            InferenceError: the server refused, or did not answer within `timeout_sec`.
        """
        self._connection.connect(self._poll_for_welcome, timeout_sec)

    def submit(self, columns: Columns, policies: tuple[str, ...] = (LEARNER_POLICY,)) -> int:
        """Send rows in one message; returns its id.

        Raises:
            InferenceError: the send queue is full, because the server does not read.
            ValueError: the observations have the wrong shape.
        """
        rows, tensors = len(columns.kind), dict(vars(columns))
        expected = rows, self._spec.observation_size
        if columns.observation.shape != expected:
            raise ValueError(f"observations have shape {list(columns.observation.shape)}; expected {list(expected)}")
        self._next_id += 1
        block = self._connection.allocate_block(self._next_id, rows, self._owed)
        if block is not None:
            block.observation[:] = tensors.pop("observation")
        self._owed[self._next_id] = rows
        step = Step(id=self._next_id, policies=policies, observation_at=-1 if block is None else block.offset)
        if not self._connection.send(step, tensors):
            del self._owed[self._next_id]
            raise InferenceError("ERR_TIMEOUT", "the server does not read: too many messages are unanswered")
        return self._next_id

    def poll(self) -> list[Answer]:
        """Read what arrived; ping where due. Never blocks. Raises ProtocolError."""
        answers = []
        while (received := self._connection.receive()) is not None:
            message, tensors = received
            if isinstance(message, Actions):
                rows = expect(tensors, "row", "int32", (None,))
                columns = (expect(tensors, name, dtype, (len(rows),)) for name, dtype in _ANSWER)
                answers.append(Answer(message.id, rows, *columns))
                self._count_answered(message.id, len(rows))
            elif isinstance(message, Welcome):
                self._connection.on_welcome(message)
                self.policies = message.policies
            elif isinstance(message, Error):
                self.refusals.append(message)
                self._count_answered(message.id, len(message.rows) or self._owed.get(message.id, 0))
        self._connection.keep_alive(time.monotonic())
        return answers

    def close(self) -> None:
        """Send CLOSE: the server frees this client's sessions."""
        self._connection.close()

    def _count_answered(self, number: int, rows: int) -> None:
        """Count answered rows of a message; with the last one its shared-memory block is free again."""
        left = self._owed.get(number, 0) - rows
        if left > 0:
            self._owed[number] = left
        else:
            self._owed.pop(number, None)

    def _poll_for_welcome(self) -> Error | None:
        self.poll()
        return self.refusals[0] if self.refusals else None
