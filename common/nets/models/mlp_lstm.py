"""`mlp_lstm`: a small network for flat observations: linear layers, an LSTM, two heads."""

from __future__ import annotations

import copy
from itertools import pairwise

import torch
from torch import Tensor, nn

from simul.common.nets.base import RecurrentNetwork, compute_dtype
from simul.common.nets.layers.lstm import PackedLSTM, make_packing
from simul.common.protocol.specs import GameSpec


def _scale_of_ids(spec: GameSpec) -> Tensor | None:
    """Factor of every number of an observation, float32 [D]; None where the layout has no ids."""
    if not any(part.kind == "id" for part in spec.layout):
        return None
    scale = torch.ones(spec.observation_size)
    for part in spec.layout:
        if part.kind == "id":
            scale[part.start : part.start + part.size] = 1.0 / max(part.high, 1.0)
    return scale


class MlpLstm(RecurrentNetwork):
    """Linear + ReLU (`layers` times), an LSTM of `hidden` units beside a skip connection, policy and value heads.

    With `memory: false` there is no LSTM and no state. Ids of the layout are scaled to [0, 1]; `name: pokemon`
    embeds them instead.
    """

    scale: Tensor | None

    def __init__(self, spec: GameSpec, hidden: int = 256, layers: int = 1, memory: bool = True) -> None:
        super().__init__()
        sizes = [spec.observation_size] + [hidden] * layers
        self.body = nn.Sequential()
        for inputs, outputs in pairwise(sizes):
            self.body.extend([nn.Linear(inputs, outputs), nn.ReLU()])
        self.lstm = PackedLSTM(sizes[-1], hidden) if memory else None
        self.state_size = 2 * hidden if memory else 0
        scale = _scale_of_ids(spec)
        self.register_buffer("scale", scale, persistent=False)
        features = sizes[-1] + (hidden if memory else 0)
        self.policy_head = nn.Linear(features, spec.num_actions)
        self.value_head = nn.Linear(features, 1)
        nn.init.orthogonal_(self.policy_head.weight, 0.01)
        nn.init.zeros_(self.policy_head.bias)
        nn.init.zeros_(self.value_head.bias)

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.forward`."""
        x = self._encode(observation)
        if self.lstm is None:
            return *self._heads(x, None), state
        h, new_state = self.lstm(x, state)
        return *self._heads(x, h), new_state

    def unroll(self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As `RecurrentNetwork.unroll`, on valid rows only."""
        packing = make_packing(lengths, observation.shape[0], observation.device)
        x = self._encode(packing.pack(observation))
        h = None
        if self.lstm is not None:
            h = self.lstm.run(x, state.index_select(0, packing.order), packing.batch_sizes)
        logits, value = self._heads(x, h)
        return packing.pad(logits), packing.pad(value)

    def lowered(self, dtype: torch.dtype) -> MlpLstm:
        """As `RecurrentNetwork.lowered`."""
        network = copy.deepcopy(self)
        network.body.to(dtype)
        if network.lstm is not None:
            network.lstm.to(dtype)
        return network

    def _encode(self, observation: Tensor) -> Tensor:
        weight = next(self.body.parameters(), self.policy_head.weight)
        if self.scale is not None:
            observation = observation.float() * self.scale
        x: Tensor = self.body(observation.to(compute_dtype(weight)))
        return x

    def _heads(self, x: Tensor, h: Tensor | None) -> tuple[Tensor, Tensor]:
        features = x.float() if h is None else torch.cat((x.float(), h), dim=1)
        with torch.autocast(features.device.type, enabled=False):
            return self.policy_head(features), self.value_head(features).squeeze(1)
