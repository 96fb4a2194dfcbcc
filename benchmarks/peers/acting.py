"""One decision of policy P for rows that carry their own state: what every peer and local inference run."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.serving.policy import NETWORK, SPEC
from simul.common.nets.build import build_network
from simul.common.nets.traced import traced_forward
from simul.inference_server.engine.sampling import recorded_sampler


class Acting:
    """Forward and masked sampling, both recorded, on one thread; the weights of every process are the same.

    Our own server starts from the same seed and runs the same recorded forward. It samples in a compiled loop on a CPU,
    which is part of what it does around the forward; the peers sample as one does in torch.
    """

    def __init__(self, precision: str) -> None:
        torch.set_num_threads(1)
        network = build_network(NETWORK, SPEC)
        if precision != "float32":
            network = network.lowered(getattr(torch, precision))
        self._forward = traced_forward(network.eval().requires_grad_(False), SPEC)
        self._sample = recorded_sampler(SPEC.num_actions, torch.device("cpu"))

    @torch.inference_mode()
    def __call__(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Act once in B rows.

        Args:
            observation: float32 [B, 2160]. mask: uint8 or bool [B, 26], 1 = legal. state: float32 [B, 512].

        Returns:
            float32 [3, B]: action, log-prob, value; and the new state, float32 [B, 512].
        """
        legal = mask.bool()
        logits, value, new_state = self._forward(observation, legal, state)
        noise = -torch.empty_like(logits, dtype=torch.float32).exponential_().log()
        return self._sample(logits, value, legal, noise, torch.ones(len(mask))), new_state
