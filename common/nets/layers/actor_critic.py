"""What networks share that encode an observation into a vector: a memory beside a skip connection, and two heads."""

from __future__ import annotations

import copy
from typing import Self

import torch
from torch import Tensor, nn

from simul.common.nets.layers.lstm import make_packing
from simul.common.nets.layers.memory import RememberingNetwork


class ActorCritic(RememberingNetwork):
    """An encoder, a memory of `hidden` units (an LSTM, a GRU, or none), policy and value heads over both.

    A subclass builds its encoder, calls `add_heads`, and implements `encode`:

        class GruNetwork(ActorCritic):
            def __init__(self, spec: GameSpec, hidden: int = 64) -> None:
                super().__init__()
                self.body = nn.Linear(spec.observation_size, hidden)
                self.add_heads(hidden, hidden, "gru", spec.num_actions)

            def encode(self, observation: Tensor) -> Tensor:
                return self.body(observation.to(compute_dtype(self.body.weight))).relu()
    """

    def add_heads(self, width: int, hidden: int, memory: str, num_actions: int) -> None:
        """Add the memory and both heads; the last call of a subclass's `__init__`.

        Args:
            width: of what `encode` returns.
            hidden: units of the memory.
            memory: `none`, `lstm` or `gru`.
            num_actions: A.

        Raises:
            ConfigError: another memory.
        """
        self.add_memory(width, hidden, memory)
        features = width + (hidden if self.state_size else 0)
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
        h, new_state = self.remember(x, state)
        return *self._heads(x, h), new_state

    def unroll(self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As `RecurrentNetwork.unroll`, on valid rows only."""
        packing = make_packing(lengths, observation.shape[0], observation.device)
        x = self.encode(packing.pack(observation))
        logits, value = self._heads(x, self.remember_rows(x, state, packing))
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
