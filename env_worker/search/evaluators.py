"""Who answers the leaves: the inference server through EVALUATE, or a uniform network."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simul.common.client.evaluation import Evaluation, unanswered


class LeafEvaluator(Protocol):
    """Answers rows with priors and values, some time after they were submitted:

    number = evaluator.submit(observation, mask, num_actions)
    for evaluation in evaluator.poll():         # evaluation.id == number
    """

    def submit(self, observation: NDArray[Any], mask: NDArray[np.uint8], num_actions: int) -> int:
        """Rows of one request: wire dtype [N, D], uint8 [N, ceil(A / 8)] (bits). Returns the id of the answer."""

    def poll(self) -> list[Evaluation]:
        """Answers that have arrived. Waits a little where there are none."""


class UniformEvaluator:
    """Every legal action alike, every value 0: search without a network."""

    def __init__(self) -> None:
        self._answers: list[Evaluation] = []
        self._submitted = 0

    def submit(self, observation: NDArray[Any], mask: NDArray[np.uint8], num_actions: int) -> int:
        """The answer waits in the next `poll`."""
        self._submitted += 1
        answer = unanswered(self._submitted, mask, num_actions)
        counts = np.diff(answer.first)
        answer.legal_priors[:] = np.repeat((1.0 / counts).astype(np.float32), counts)
        answer.value[:] = answer.policy_version[:] = 0
        self._answers.append(answer)
        return self._submitted

    def poll(self) -> list[Evaluation]:
        """All answers."""
        answers, self._answers = self._answers, []
        return answers
