"""`attention`: a transformer encoder over a game's entities, with or without memory."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from simul.common.config.section import NonNegative, Positive
from simul.common.nets.base import compute_dtype
from simul.common.nets.layers.actor_critic import ActorCritic
from simul.common.nets.layers.inputs import AUTO, AttendedInputs
from simul.common.nets.layers.mlp import linear_layers
from simul.common.protocol.specs import GameSpec


class Attention(ActorCritic):
    """Attended inputs, a memory of `hidden` units beside a skip connection, policy and value heads.

    Without a memory Linear + ReLU takes its place. A memory reads the transformer's normalised output itself: ReLUs
    between them die at a high learning rate, and different inputs become the same to it.

    `layers`, `heads`, `width`: of the transformer; `entities`: groups of the layout, by default those that the game
    declares; `memory`: none, lstm or gru. Without entities there is one token, and nothing to attend to: `mlp` is the
    cheaper network. Raises ConfigError.
    """

    def __init__(
        self,
        spec: GameSpec,
        width: Positive = 64,
        layers: NonNegative = 1,
        heads: Positive = 4,
        hidden: Positive = 256,
        memory: str = "none",
        entities: Sequence[str] = (),
        embedding: int | str = AUTO,
        channels: Sequence[Positive] = (16, 32, 32),
    ) -> None:
        super().__init__()
        self.inputs = AttendedInputs(spec, width, layers, heads, embedding, channels, entities)
        layers_behind = 1 if memory == "none" else 0
        self.body = linear_layers(self.inputs.width, hidden, layers_behind, "relu")
        self.add_heads(hidden if layers_behind else self.inputs.width, hidden, memory, spec.num_actions)

    def encode(self, observation: Tensor) -> Tensor:
        """As `ActorCritic.encode`."""
        dtype = compute_dtype(self.inputs.rest_token.weight)
        x: Tensor = self.body(self.inputs(observation, dtype))
        return x
