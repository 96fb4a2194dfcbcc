"""`mlp`: linear layers over everything that a game declares, without memory."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from simul.common.config.section import NonNegative, Positive
from simul.common.nets.base import compute_dtype
from simul.common.nets.layers.actor_critic import ActorCritic
from simul.common.nets.layers.inputs import AUTO, declared_inputs
from simul.common.nets.layers.mlp import linear_layers
from simul.common.protocol.specs import GameSpec


class Mlp(ActorCritic):
    """Declared inputs, linear + activation (`layers` times), policy and value heads.

    `width` (of an entity's encoding), `entities`, `embedding`, `channels`: see `declared_inputs`; `activation`: see
    `linear_layers`. Raises ConfigError.
    """

    memory = "none"

    def __init__(
        self,
        spec: GameSpec,
        hidden: Positive = 256,
        layers: NonNegative = 2,
        activation: str = "relu",
        entities: str = "pool",
        width: Positive = 64,
        embedding: int | str = AUTO,
        channels: Sequence[Positive] = (16, 32, 32),
    ) -> None:
        super().__init__()
        self.inputs = declared_inputs(spec, width, entities, embedding, channels)
        self.body = linear_layers(self.inputs.width, hidden, layers, activation)
        self.add_heads(hidden if layers else self.inputs.width, hidden, self.memory, spec.num_actions)

    def encode(self, observation: Tensor) -> Tensor:
        """As `ActorCritic.encode`."""
        dtype = compute_dtype(next(self.body.parameters(), self.policy_head.weight))
        x: Tensor = self.body(self.inputs(observation, dtype))
        return x
