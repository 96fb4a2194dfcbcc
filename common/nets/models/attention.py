"""`attention`: a transformer encoder over a game's entities, with or without memory."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from simul.common.nets.base import compute_dtype
from simul.common.nets.layers.actor_critic import ActorCritic
from simul.common.nets.layers.inputs import AUTO, AttendedInputs
from simul.common.nets.layers.mlp import linear_layers
from simul.common.protocol.specs import GameSpec


class Attention(ActorCritic):
    """Attended inputs, Linear + ReLU, a memory of `hidden` units beside a skip connection, policy and value heads.

    `layers`, `heads`, `width`: of the transformer; `entities`: groups of the layout, by default those that the game
    declares; `memory`: none, lstm or gru. Without entities there is one token, and nothing to attend to: `mlp` is the
    cheaper network. Raises ConfigError.
    """

    def __init__(
        self,
        spec: GameSpec,
        width: int = 64,
        layers: int = 1,
        heads: int = 4,
        hidden: int = 256,
        memory: str = "none",
        entities: Sequence[str] = (),
        embedding: int | str = AUTO,
        channels: Sequence[int] = (16, 32, 32),
    ) -> None:
        super().__init__()
        self.inputs = AttendedInputs(spec, width, layers, heads, embedding, channels, entities)
        self.body = linear_layers(self.inputs.width, hidden, 1, "relu")
        self.add_heads(hidden, hidden, memory, spec.num_actions)

    def encode(self, observation: Tensor) -> Tensor:
        """As `ActorCritic.encode`."""
        dtype = compute_dtype(next(self.body.parameters()))
        x: Tensor = self.body(self.inputs(observation, dtype))
        return x
