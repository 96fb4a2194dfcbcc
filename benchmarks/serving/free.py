"""A network that costs nothing: what is left of a row is the server's own work, which a GPU would wait for."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from simul.common.nets.base import RecurrentNetwork
from simul.common.protocol.specs import GameSpec

MOST_ROWS = 4096


class FreeNetwork(RecurrentNetwork):
    """Even logits, a value of 0, and the state as it came."""

    def __init__(self, spec: GameSpec, hidden: int = 256) -> None:
        super().__init__()
        self.state_size = 2 * hidden
        self.value_head = nn.Linear(1, 1)  # what is loaded from a checkpoint
        self.register_buffer("logits", torch.zeros(MOST_ROWS, spec.num_actions), persistent=False)
        self.register_buffer("value", torch.zeros(MOST_ROWS), persistent=False)

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.forward`."""
        rows = observation.shape[0]
        return self.get_buffer("logits")[:rows], self.get_buffer("value")[:rows], state
