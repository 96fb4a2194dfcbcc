"""`mlp_lstm`: a small network for flat observations: linear layers, an LSTM, two heads."""

from __future__ import annotations

import torch
from torch import Tensor

from simul.common.config.section import NonNegative, Positive
from simul.common.errors import ConfigError
from simul.common.nets.base import compute_dtype
from simul.common.nets.layers.actor_critic import ActorCritic
from simul.common.nets.layers.inputs import VectorInputs, check_embedding
from simul.common.nets.layers.mlp import linear_layers
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


class MlpLstm(ActorCritic):
    """Linear + activation (`layers` times), an LSTM of `hidden` units beside a skip connection, policy and value heads.

    `activation`: see `linear_layers`. With `memory: false` there is no LSTM and no state. `embedding`: 0 scales the ids
    of the layout to [0, 1]; else they are embedded, see `VectorInputs`. Raises ConfigError for images, and for another
    activation or embedding.
    """

    scale: Tensor | None

    def __init__(
        self,
        spec: GameSpec,
        hidden: Positive = 256,
        layers: NonNegative = 1,
        memory: bool = True,
        activation: str = "relu",
        embedding: int | str = 0,
    ) -> None:
        super().__init__()
        if spec.observation_dtype == "uint8":
            raise ConfigError(
                f"{spec.name} observes images, uint8 {list(spec.observation_shape)}; mlp_lstm takes vectors. "
                "Set network.name: conv_lstm"
                if spec.observation_shape
                else f"{spec.name} observes bytes without an observation_shape. Declare one, or observe float32"
            )
        check_embedding(embedding, zero="0 for ids as numbers")
        self.inputs = VectorInputs(spec, embedding) if embedding else None
        width = spec.observation_size if self.inputs is None else self.inputs.width
        self.body = linear_layers(width, hidden, layers, activation)
        self.add_heads(hidden if layers else width, hidden, "lstm" if memory else "none", spec.num_actions)
        self.register_buffer("scale", None if embedding else _scale_of_ids(spec), persistent=False)

    def encode(self, observation: Tensor) -> Tensor:
        """As `ActorCritic.encode`."""
        dtype = compute_dtype(next(self.body.parameters(), self.policy_head.weight))
        if self.inputs is not None:
            observation = self.inputs(observation, dtype)
        elif self.scale is not None:
            observation = observation.float() * self.scale
        x: Tensor = self.body(observation.to(dtype))
        return x
