"""A network of your own, named in YAML; see `attention_network` for one over entities.

network:
  name: examples.custom_network:GruNetwork
  options: {hidden: 64}
"""

import torch
from torch import Tensor, nn

from simul.common.nets.layers.inputs import VectorInputs
from simul.common.protocol.specs import GameSpec


class GruNetwork(nn.Module):
    """Any stateless nn.Module: built from the spec, it maps (observation, mask, state) to (logits, value, state)."""

    def __init__(self, spec: GameSpec, hidden: int = 64) -> None:
        super().__init__()
        self.state_size = hidden  # floats kept per session by the server, zeros at the first decision
        self.inputs = VectorInputs(spec)  # ids that the game declares are embedded, images convolved
        self.cell = nn.GRUCell(self.inputs.width, hidden)
        self.heads = nn.Linear(hidden, spec.num_actions + 1)

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """observation [B, D], mask bool [B, A], state [B, S] -> unmasked logits [B, A], value [B], state [B, S]."""
        state = self.cell(self.inputs(observation), state)
        out = self.heads(torch.relu(state))
        return out[:, 1:], out[:, 0], state
