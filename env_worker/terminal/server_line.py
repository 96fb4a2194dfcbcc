"""Questions to the inference server, answered one at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from simul.common.client.client import InferenceClient, Replies
from simul.common.client.evaluation import Evaluation
from simul.common.errors import ERR_NO_SESSION, InferenceError
from simul.common.protocol.decisions import Action, Decision

SILENT_SEC = 60.0  # longest wait for an answer
_WAIT_SEC = 0.05

Answer = TypeVar("Answer")


class SessionLostError(Exception):
    """The server has dropped the session, which nothing was asked of for long. Caught by PolicySession: a new one."""


class ServerLine:
    """A connected client that waits for each answer. Raises InferenceError where the server refuses or is silent."""

    def __init__(self, client: InferenceClient) -> None:
        self._client = client
        self._answers: list[Evaluation] = []

    def act(self, decision: Decision) -> Action:
        """The answer to a decision. Raises SessionLostError."""
        self._client.submit([decision])

        def answered(replies: Replies) -> Action | None:
            for failure in replies.failures:
                if failure.code == ERR_NO_SESSION:
                    raise SessionLostError
                raise InferenceError(failure.code, failure.message)
            if replies.lost:
                raise SessionLostError
            key = (decision.seat, decision.episode, decision.step)
            return next((each for each in replies.actions if (each.seat, each.episode, each.step) == key), None)

        return self._wait_for(answered)

    def evaluate(
        self, observation: NDArray[Any], mask: NDArray[np.bool_], policy: str, session: tuple[int, int, int]
    ) -> Evaluation:
        """The answer to one row, wire dtype [D] and bool [A]. `session`: as of `InferenceClient.evaluate`.

        Raises SessionLostError.
        """
        number = self._client.evaluate(observation[None], mask[None], policy=policy, sessions=[session])
        evaluation = self._wait_for(lambda replies: _with_number(replies, number))
        for code, message in evaluation.errors.values():
            if code == ERR_NO_SESSION:
                raise SessionLostError
            raise InferenceError(code, message)
        return evaluation

    def close(self) -> None:
        """Disconnect."""
        self._client.close()

    @property
    def rows_per_message(self) -> int:
        """Most rows of an evaluation."""
        return self._client.rows_per_message

    def evaluator(self, policy: str) -> LineEvaluator:
        """For the searches of `simul.env_worker.search`."""
        return LineEvaluator(self._client, self._wait_for, policy)

    def _wait_for(self, find: Callable[[Replies], Answer | None]) -> Answer:
        deadline = time.monotonic() + SILENT_SEC
        while time.monotonic() < deadline:
            if (found := find(self._client.poll())) is not None:
                return found
            self._client.poller.wait(_WAIT_SEC)
        raise InferenceError("ERR_TIMEOUT", f"the inference server has not answered for {SILENT_SEC:.0f} s")


class LineEvaluator:
    """A LeafEvaluator of `simul.env_worker.search.evaluators`, whose answers are waited for at most SILENT_SEC."""

    def __init__(
        self, client: InferenceClient, wait_for: Callable[[Callable[[Replies], Any]], Any], policy: str
    ) -> None:
        self._client = client
        self._wait_for = wait_for
        self._policy = policy

    def submit(self, observation: NDArray[Any], mask: NDArray[np.uint8], num_actions: int) -> int:
        """One EVALUATE message with zero state."""
        return self._client.evaluate(observation, mask, policy=self._policy, packed=True)

    def poll(self) -> list[Evaluation]:
        """Answers, at least one."""
        found: list[Evaluation] = self._wait_for(lambda replies: replies.evaluations or None)
        return found


def _with_number(replies: Replies, number: int) -> Evaluation | None:
    return next((each for each in replies.evaluations if each.id == number), None)
