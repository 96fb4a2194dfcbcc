"""Layers for images and boards: what reads them from flat observations, and a tower of residual blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec

# How far from 0 the ends of a byte's range lie. A normal number that fills its range then varies by about 1; scaled to
# [0, 1] it varied by a tenth, and was learned from late.
SPREAD = 4.0


class ImageReader(nn.Module):
    """Reads the image that a flat observation begins with, and the numbers behind it.

    Attributes:
        scale_of_rest: float32 [2, rest], what is subtracted from the numbers behind the image and what they are then
            multiplied by, where some are bytes that the layout says go beyond 1; else None.
        channels, height, width: of the image as `read` returns it. rest: how many numbers lie behind it.
    """

    def __init__(self, spec: GameSpec) -> None:
        """Raises ConfigError where the spec declares no image, or one that does not fit."""
        super().__init__()
        shape, axes = spec.observation_shape, spec.observation_axes
        if not shape:
            way_out = (
                "Declare the image's observation_shape, or observe float32" if spec.observation_dtype == "uint8"
                else "Set network.name: mlp_lstm"
            )  # fmt: skip
            raise ConfigError(f"{spec.name} observes a vector, and no image. {way_out}")
        size = math.prod(shape)
        letters = len(axes) == len(shape) and axes.count("H") == axes.count("W") == 1 and set(axes) <= set("NCHW")
        if not letters or not 1 <= size <= spec.observation_size:
            raise ConfigError(
                f"{spec.name} declares observation_shape {list(shape)} and observation_axes {axes!r} in an observation "
                f"of {spec.observation_size} numbers; expected a letter of N, C, H, W for each size, H and W once "
                "each, and a product of the sizes that the observation holds"
            )
        self.height, self.width = shape[axes.index("H")], shape[axes.index("W")]
        self.channels = size // (self.height * self.width)
        self.rest = spec.observation_size - size
        self._size, self._shape = size, shape
        others = [place for place, letter in enumerate(axes) if letter not in "HW"]
        self._order = [1 + place for place in (*others, axes.index("H"), axes.index("W"))]
        self._scale = 1 / 255 if spec.observation_dtype == "uint8" else 1.0
        middle = torch.zeros(self.rest, device="cpu")  # also of a network_outline, because they are read here
        factor = torch.ones(self.rest, device="cpu")
        for part in spec.layout:
            if part.start >= size and part.high > max(part.low, 1) and spec.observation_dtype == "uint8":
                these = slice(part.start - size, part.start - size + part.size)
                middle[these], factor[these] = (part.low + part.high) / 2, 2 * SPREAD / (part.high - part.low)
        self.scale_of_rest: Tensor | None
        scale = torch.stack((middle, factor)) if middle.any() else None
        self.register_buffer("scale_of_rest", scale, persistent=False)

    def read(self, observation: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Wire dtype [B, D] -> image [B, channels, height, width] and the rest [B, rest].

        Bytes of the image are scaled to [0, 1], those behind it that go beyond 1 to [-SPREAD, SPREAD].
        """
        image = observation[:, : self._size].unflatten(1, self._shape).permute(0, *self._order)
        image = image.reshape(-1, self.channels, self.height, self.width)
        image = image.contiguous(memory_format=torch.channels_last)  # convolutions of either device are faster so
        rest = observation[:, self._size :].to(dtype)
        if self.scale_of_rest is not None:
            middle, factor = self.scale_of_rest.to(dtype)
            rest = (rest - middle) * factor
        return image.to(dtype) * self._scale, rest


class ResidualBlock(nn.Module):
    """x + conv(relu(conv(relu(x)))), 3 x 3 (He et al. 2016, arXiv:1603.05027)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> the same shape."""
        out: Tensor = x + self.second(self.first(x.relu()).relu())
        return out


def residual_tower(inputs: int, channels: Sequence[int], blocks: int) -> nn.Sequential:
    """IMPALA's tower (Espeholt et al. 2018, arXiv:1802.01561, figure 3): [B, inputs, H, W] -> [B, C, h, w].

    A section for each of `channels`: conv 3 x 3, max-pooling that halves height and width (rounded up), and `blocks`
    residual blocks.
    """
    tower = nn.Sequential()
    for before, after in zip((inputs, *channels), channels):
        tower.extend([nn.Conv2d(before, after, 3, padding=1), nn.MaxPool2d(3, stride=2, padding=1)])
        tower.extend(ResidualBlock(after) for _ in range(blocks))
    return tower
