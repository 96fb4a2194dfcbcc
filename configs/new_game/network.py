"""A network of your own. The YAML file names it under `network`; without that, Simul's own `mlp_lstm` plays.

Any stateless nn.Module that is built from the game's spec and maps (observation, mask, state) to (logits, value, new
state).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from simul import GameSpec


class Network(nn.Module):
    """Two layers and a GRU, with a head for the action and one for the value.

    Shapes: B rows of a batch, D numbers of an observation, A actions, S numbers of state.
    """

    def __init__(self, spec: GameSpec, hidden: int = 64) -> None:
        super().__init__()
        self.state_size = hidden  # S: what the server keeps for each game between its decisions, zeros at first
        self.body = nn.Sequential(
            nn.Linear(spec.observation_size, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.memory = nn.GRUCell(hidden, hidden)
        self.policy = nn.Linear(hidden, spec.num_actions)
        self.value = nn.Linear(hidden, 1)

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """observation [B, D], mask bool [B, A] (True = legal), state [B, S] -> logits [B, A], value [B], state [B, S].

        Logits are not masked here: server and learner mask them.
        """
        state = self.memory(self.body(observation.float()), state)
        features = torch.relu(state)
        return self.policy(features), self.value(features).squeeze(-1), state
