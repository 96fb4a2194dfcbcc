"""`conv_lstm`: a residual convolutional network for images and boards, with an LSTM behind it and two heads."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from simul.common.config.section import NonNegative, Positive
from simul.common.nets.base import compute_dtype
from simul.common.nets.layers.actor_critic import ActorCritic
from simul.common.nets.layers.conv import ImageReader, residual_tower
from simul.common.protocol.specs import GameSpec


class ConvLstm(ActorCritic):
    """IMPALA's residual tower, Linear + ReLU, an LSTM of `hidden` units beside a skip connection, two heads.

    `channels` and `blocks`: see `residual_tower`; each of `channels` halves height and width. Numbers behind the image
    join the tower's output. With `memory: false` there is no LSTM and no state. Raises ConfigError for vectors.
    """

    def __init__(
        self,
        spec: GameSpec,
        channels: Sequence[Positive] = (16, 32, 32),
        blocks: NonNegative = 2,
        hidden: Positive = 256,
        memory: bool = True,
    ) -> None:
        super().__init__()
        self._reader = ImageReader(spec)
        self.tower = residual_tower(self._reader.channels, channels, blocks)
        height, width = self._reader.height, self._reader.width
        for _ in channels:
            height, width = -(-height // 2), -(-width // 2)
        planes = channels[-1] if channels else self._reader.channels
        self.body = nn.Linear(planes * height * width + self._reader.rest, hidden)
        self.add_heads(hidden, hidden, "lstm" if memory else "none", spec.num_actions)

    def encode(self, observation: Tensor) -> Tensor:
        """As `ActorCritic.encode`."""
        image, rest = self._reader.read(observation, compute_dtype(self.body.weight))
        x = self.tower(image).relu().flatten(1)
        return self.body(torch.cat((x, rest), dim=1)).relu()
