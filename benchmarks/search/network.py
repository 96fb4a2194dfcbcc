"""An evaluator with a network of its own, in the process that searches: the engine of the server, without a server."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from simul.common.client.evaluation import Evaluation, unanswered
from simul.common.config.schema import NetworkConfig
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.build import build_network
from simul.common.protocol.specs import GameSpec
from simul.inference_server.engine.engine import PolicyEngine


class NetworkEvaluator:
    """Answers each request with one forward, before `submit` returns.

    Args:
        network: to build with the weights of the seed 0, as the server's; or one that is built.
        threads: of torch.
        device: cpu, or cuda: a context of this process's own.
    """

    def __init__(
        self, network: NetworkConfig | RecurrentNetwork, spec: GameSpec, *, threads: int = 1, device: str = "cpu",
        precision: str = "float32",
    ) -> None:  # fmt: skip
        torch.set_num_threads(threads)
        built = build_network(network, spec) if isinstance(network, NetworkConfig) else network
        self._engine = PolicyEngine(
            built, spec, max_sessions=1, device=torch.device(device),
            precision=getattr(torch, precision),
        )  # fmt: skip
        self._engine.warm_up((1,))
        self._answers: list[Evaluation] = []
        self._submitted = 0

    def submit(self, observation: NDArray[Any], mask: NDArray[np.uint8], num_actions: int) -> int:
        """As `LeafEvaluator.submit`."""
        self._submitted += 1
        rows = np.full(len(mask), self._engine.zero_row)
        answer = unanswered(self._submitted, mask, num_actions)
        answer.legal_priors, answer.value = self._engine.evaluate(observation, mask, rows)
        answer.policy_version[:] = 0
        self._answers.append(answer)
        return self._submitted

    def poll(self) -> list[Evaluation]:
        """All answers."""
        answers, self._answers = self._answers, []
        return answers
