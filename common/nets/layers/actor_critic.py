"""What networks share that encode an observation into a vector: an LSTM beside a skip connection, and two heads."""

from __future__ import annotations

import copy
from typing import Self

import torch
from torch import Tensor, nn

from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.layers.lstm import PackedLSTM, make_packing


class LstmActorCritic(RecurrentNetwork):
    """An encoder, an LSTM of `hidden` units unless `memory` is false, policy and value heads over both.

    A subclass builds its encoder, calls `add_heads`, and implements `encode`.
    """

    lstm: PackedLSTM | None

    def add_heads(self, width: int, hidden: int, memory: bool, num_actions: int) -> None:
        """`width`: of what `encode` returns."""
        self.lstm = PackedLSTM(width, hidden) if memory else None
        self.state_size = 2 * hidden if memory else 0
        features = width + (hidden if memory else 0)
        self.policy_head = nn.Linear(features, num_actions)
        self.value_head = nn.Linear(features, 1)
        nn.init.orthogonal_(self.policy_head.weight, 0.01)
        nn.init.zeros_(self.policy_head.bias)
        nn.init.zeros_(self.value_head.bias)

    def encode(self, observation: Tensor) -> Tensor:
        """Observation, wire dtype or float32 [B, D] -> [B, width]."""
        raise NotImplementedError

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.forward`."""
        x = self.encode(observation)
        if self.lstm is None:
            return *self._heads(x, None), state
        h, new_state = self.lstm(x, state)
        return *self._heads(x, h), new_state

    def unroll(self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As `RecurrentNetwork.unroll`, on valid rows only."""
        packing = make_packing(lengths, observation.shape[0], observation.device)
        x = self.encode(packing.pack(observation))
        h = None
        if self.lstm is not None:
            h = self.lstm.run(x, state.index_select(0, packing.order), packing.batch_sizes)
        logits, value = self._heads(x, h)
        return packing.pad(logits), packing.pad(value)

    def lowered(self, dtype: torch.dtype) -> Self:
        """As `RecurrentNetwork.lowered`."""
        network = copy.deepcopy(self)
        for child in network.children():
            if child not in (network.policy_head, network.value_head):
                child.to(dtype)
        return network

    def _heads(self, x: Tensor, h: Tensor | None) -> tuple[Tensor, Tensor]:
        features = x.float() if h is None else torch.cat((x.float(), h), dim=1)
        with torch.autocast(features.device.type, enabled=False):
            return self.policy_head(features), self.value_head(features).squeeze(1)
