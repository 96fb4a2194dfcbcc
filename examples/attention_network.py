"""A network of your own that attends to the entities that a game declares, and remembers, named in YAML:

network:
  name: examples.attention_network:AttentionNetwork
  options: {width: 32}
"""

from torch import Tensor

from simul.common.nets.base import compute_dtype
from simul.common.nets.layers.actor_critic import ActorCritic
from simul.common.nets.layers.inputs import AttendedInputs
from simul.common.protocol.specs import GameSpec


class AttentionNetwork(ActorCritic):
    """An encoder; `ActorCritic` adds a GRU, both heads, unrolls over packed rows, and bfloat16 for serving."""

    def __init__(self, spec: GameSpec, width: int = 32) -> None:
        super().__init__()
        self.inputs = AttendedInputs(spec, width, layers=1, heads=4)
        self.add_heads(self.inputs.width, width, memory="gru", num_actions=spec.num_actions)

    def encode(self, observation: Tensor) -> Tensor:
        """Observation, wire dtype or float32 [B, D] -> [B, width]."""
        return self.inputs(observation, compute_dtype(self.inputs.rest_token.weight))
