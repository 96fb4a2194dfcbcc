"""`mlp_lstm`: a small network for flat observations: linear layers, an LSTM, two heads."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from simul.common.errors import ConfigError
from simul.common.nets.base import compute_dtype
from simul.common.nets.layers.actor_critic import LstmActorCritic
from simul.common.protocol.specs import GameSpec

_ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh}


def _scale_of_ids(spec: GameSpec) -> Tensor | None:
    """Factor of every number of an observation, float32 [D]; None where the layout has no ids."""
    if not any(part.kind == "id" for part in spec.layout):
        return None
    scale = torch.ones(spec.observation_size)
    for part in spec.layout:
        if part.kind == "id":
            scale[part.start : part.start + part.size] = 1.0 / max(part.high, 1.0)
    return scale


class MlpLstm(LstmActorCritic):
    """Linear + activation (`layers` times), an LSTM of `hidden` units beside a skip connection, policy and value heads.

    `activation`: relu, or tanh, which keeps exploring where few numbers of like size are observed (Andrychowicz et al.
    2021, section 3.2); layers of tanh begin orthogonal, with gain sqrt(2). With `memory: false` there is no LSTM and no
    state. Ids of the layout are scaled to [0, 1]; `name: pokemon` embeds them instead. Raises ConfigError for images,
    and for another activation.
    """

    scale: Tensor | None

    def __init__(
        self, spec: GameSpec, hidden: int = 256, layers: int = 1, memory: bool = True, activation: str = "relu"
    ) -> None:
        super().__init__()
        if activation not in tuple(_ACTIVATIONS):
            raise ConfigError(f"activation: expected one of {', '.join(_ACTIVATIONS)}, got {activation!r}")
        if spec.observation_dtype == "uint8":
            raise ConfigError(
                f"{spec.name} observes images, uint8 {list(spec.observation_shape)}; mlp_lstm takes vectors. "
                "Set network.name: conv_lstm"
            )
        sizes = [spec.observation_size] + [hidden] * layers
        self.body = nn.Sequential()
        for inputs, outputs in pairwise(sizes):
            linear = nn.Linear(inputs, outputs)
            if activation == "tanh":
                nn.init.orthogonal_(linear.weight, 2**0.5)
                nn.init.zeros_(linear.bias)
            self.body.extend([linear, _ACTIVATIONS[activation]()])
        self.add_heads(sizes[-1], hidden, memory, spec.num_actions)
        self.register_buffer("scale", _scale_of_ids(spec), persistent=False)

    def encode(self, observation: Tensor) -> Tensor:
        """As `LstmActorCritic.encode`."""
        weight = next(self.body.parameters(), self.policy_head.weight)
        if self.scale is not None:
            observation = observation.float() * self.scale
        x: Tensor = self.body(observation.to(compute_dtype(weight)))
        return x
