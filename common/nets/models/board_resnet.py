"""`board_resnet`: a residual tower at full resolution, a policy head over the board's cells, and a value in [-1, 1].

As AlphaGo Zero's (Silver et al. 2017, doi:10.1038/nature24270, methods), without batch normalisation: a row's answer
does not depend on the rows beside it, and the second convolution of each block begins at zero.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from simul.common.config.section import NonNegative, Positive
from simul.common.errors import ConfigError
from simul.common.nets.base import RecurrentNetwork, compute_dtype
from simul.common.nets.layers.conv import ImageReader, ResidualBlock
from simul.common.nets.layers.lstm import make_packing
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.compiled import FLOAT32, INT64, column, compiled, read

VALUE_PLANES = 8
CACHED_LOGITS = 2**17  # float32: half a megabyte
POLICY_PLANES = 8  # of a head without a mapping of actions to cells


class CellPolicyHead(nn.Module):
    """Logits gathered from a 1 x 1 convolution: action a is at `spec.action_cells[a]` of [planes, H, W].

    Actions without a cell (a pass, say) get theirs from the mean over the board.
    """

    index: Tensor
    place: Tensor

    def __init__(self, spec: GameSpec, channels: int, height: int, width: int) -> None:
        """Raises ConfigError where the spec's mapping does not fit."""
        super().__init__()
        cells = torch.tensor(spec.action_cells)
        count = spec.action_planes * height * width
        if len(cells) != spec.num_actions or not ((cells >= -1) & (cells < count)).all():
            raise ConfigError(
                f"{spec.name} declares {len(cells)} action_cells from {int(cells.min())} to {int(cells.max())}; "
                f"expected one of each of its {spec.num_actions} actions, below {spec.action_planes} action_planes x "
                f"{height} x {width} = {count}, or -1"
            )
        apart = cells < 0
        self.planes = count  # logits that the convolution gives for a position
        self.conv = nn.Conv2d(channels, spec.action_planes, 1)
        self.apart = nn.Linear(channels, int(apart.sum())) if apart.any() else None
        index = torch.where(apart, count - 1 + apart.cumsum(0), cells)
        self.register_buffer("index", index, persistent=False)
        plane, cell = cells // (height * width), cells % (height * width)
        place = torch.where(apart, count - 1 + apart.cumsum(0), cell * spec.action_planes + plane)
        self.register_buffer("place", place, persistent=False)  # of each action, cell before plane
        _init_small(self.conv)
        if self.apart is not None:
            _init_small(self.apart)

    def forward(self, x: Tensor) -> Tensor:
        """float32 [B, C, H, W] -> logits [B, A]."""
        logits = self.conv(x).flatten(1)
        if self.apart is not None:
            logits = torch.cat((logits, self.apart(x.mean((2, 3)))), dim=1)
        return logits.index_select(1, self.index)

    def listed(self, x: Tensor, actions: Tensor) -> Tensor:
        """float32 [B, C, H, W], int64 [B, M] -> logits [B, M] of those actions.

        On a CPU without gradients these products alone are made. Else the product over the cells has the planes last,
        as `x` lies in memory: nothing is transposed, no row of all actions is written. On a CPU a few positions at a
        time, so that their planes stay in its cache.
        """
        if x.device.type == "cpu" and not torch.is_grad_enabled():
            return self._products(x, actions)
        place = self.place[actions]
        inside = place < self.planes
        cell_place = place if self.apart is None else place.where(inside, 0)
        rows = len(x) if x.device.type != "cpu" else max(1, CACHED_LOGITS // self.planes)
        weight, cells = self.conv.weight.flatten(1), x.permute(0, 2, 3, 1)
        parts = [
            F.linear(part.flatten(0, 2), weight, self.conv.bias).view(len(part), self.planes).gather(1, wanted)
            for part, wanted in zip(cells.split(rows), cell_place.split(rows))
        ]
        logits = parts[0] if len(parts) == 1 else torch.cat(parts)
        if self.apart is None:
            return logits
        apart = self.apart(x.mean((2, 3))).gather(1, (place - self.planes).clamp(min=0))
        return torch.where(inside, logits, apart)

    def _products(self, x: Tensor, actions: Tensor) -> Tensor:
        """`listed` by one loop; the mean over the board only of rows that list an action without a cell."""
        logits = torch.empty(actions.shape)
        cells, weight = x.permute(0, 2, 3, 1).flatten(1, 2), self.conv.weight.detach().flatten(1)
        bias = self.conv.bias
        assert bias is not None
        apart = _write_products(
            cells.contiguous().numpy(), weight.contiguous().numpy(), bias.detach().numpy(), self.place.numpy(),
            actions.contiguous().numpy(), logits.numpy(),
        )  # fmt: skip
        if self.apart is not None and len(apart):
            row, at, number = torch.from_numpy(apart).unbind(1)
            logits[row, at] = self.apart(x[row].mean((2, 3))).gather(1, number[:, None]).squeeze(1)
        return logits


@compiled(
    read(FLOAT32, 3), read(FLOAT32, 2), read(FLOAT32), read(INT64), read(INT64, 2), column(FLOAT32, 2), reorder=True
)
def _write_products(
    cells: NDArray[np.float32],
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    place: NDArray[np.int64],
    actions: NDArray[np.int64],
    logits: NDArray[np.float32],
) -> NDArray[np.int64]:
    """Write the logits [B, M] of `actions` [B, M] that have a cell; of others find row, place in the row, and number.

    cells: [B, H W, C]; weight: [planes, C]; bias: [planes]; place: [A], as of CellPolicyHead. Returns [N, 3].
    """
    planes = len(weight)
    apart, found = np.empty((actions.size, 3), np.int64), 0
    for row in range(len(actions)):
        for at in range(actions.shape[1]):
            if actions[row, at] < 0 or actions[row, at] >= len(place):
                raise IndexError("a listed action is none of the game's")
            wanted = place[actions[row, at]]
            cell = wanted // planes
            if cell >= cells.shape[1]:
                apart[found, 0], apart[found, 1], apart[found, 2] = row, at, wanted - planes * cells.shape[1]
                found += 1
                continue
            plane = wanted - cell * planes
            total = bias[plane]
            for channel in range(cells.shape[2]):
                total += cells[row, cell, channel] * weight[plane, channel]
            logits[row, at] = total
    return apart[:found]


def linear_policy_head(spec: GameSpec, channels: int, height: int, width: int) -> nn.Sequential:
    """Logits of a game whose spec maps no action to a cell: float32 [B, C, H, W] -> [B, A]."""
    last = nn.Linear(POLICY_PLANES * height * width, spec.num_actions)
    _init_small(last)
    return nn.Sequential(nn.Conv2d(channels, POLICY_PLANES, 1), nn.ReLU(), nn.Flatten(), last)


def _init_small(layer: nn.Conv2d | nn.Linear) -> None:
    """So that a fresh policy is nearly uniform."""
    nn.init.normal_(layer.weight, std=0.01)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


class BoardResNet(RecurrentNetwork):
    """`blocks` residual blocks of `channels` planes on a board of any size; no memory.

    Bytes of the board are scaled to [0, 1], bytes behind it that go beyond 1 to [-4, 4]. What lies behind the board is
    added to every cell through a linear layer. Raises ConfigError for vectors.
    """

    def __init__(
        self, spec: GameSpec, channels: Positive = 64, blocks: NonNegative = 6, hidden: Positive = 128
    ) -> None:
        """`hidden`: width of the value head."""
        super().__init__()
        self._reader = reader = ImageReader(spec)
        self.stem = nn.Conv2d(reader.channels, channels, 3, padding=1)
        self.rest = nn.Linear(reader.rest, channels) if reader.rest else None
        self.tower = nn.Sequential(*(ResidualBlock(channels) for _ in range(blocks)))
        for block in self.tower:
            assert isinstance(block, ResidualBlock)
            for parameter in block.second.parameters():
                nn.init.zeros_(parameter)
        head = CellPolicyHead if spec.action_cells else linear_policy_head
        self.policy_head: nn.Module = head(spec, channels, reader.height, reader.width)
        self.value_head = nn.Sequential(
            nn.Conv2d(channels, VALUE_PLANES, 1), nn.ReLU(), nn.Flatten(),
            nn.Linear(VALUE_PLANES * reader.height * reader.width, hidden), nn.ReLU(), nn.Linear(hidden, 1),
        )  # fmt: skip

        planes, numbers = spec.ending_planes, spec.ending_numbers
        self.predicts_ending = any(spec.ending_sizes)
        self.ending_planes = nn.Conv2d(channels, planes, 1) if planes else None
        self.ending_numbers = nn.Linear(hidden, numbers) if numbers else None

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.forward`."""
        return *self._heads(self._encode(observation)), state

    def forward_listed(
        self, observation: Tensor, mask: Tensor, state: Tensor, actions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """As `RecurrentNetwork.forward_listed`."""
        if not isinstance(self.policy_head, CellPolicyHead):
            return super().forward_listed(observation, mask, state, actions)
        x = self._encode(observation)
        with torch.autocast(x.device.type, enabled=False):
            x = x.float()
            return self.policy_head.listed(x, actions), self._value(x)

    def forward_predicting(
        self, observation: Tensor, mask: Tensor, state: Tensor, actions: Tensor
    ) -> tuple[Tensor, ...]:
        """As `RecurrentNetwork.forward_predicting`. Numbers are read off the last layer but one of the value head."""
        x = self._encode(observation)
        with torch.autocast(x.device.type, enabled=False):
            x = x.float()
            if isinstance(self.policy_head, CellPolicyHead):
                logits = self.policy_head.listed(x, actions)
            else:
                logits = self.policy_head(x).gather(1, actions)
            hidden = self.value_head[:-1](x)
            value = self.value_head[-1](hidden).squeeze(1).tanh()
            planes = () if self.ending_planes is None else (self.ending_planes(x).flatten(1),)
            numbers = () if self.ending_numbers is None else (self.ending_numbers(hidden),)
        return logits, value, *planes, *numbers

    def unroll(self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As `RecurrentNetwork.unroll`, all rows at once."""
        packing = make_packing(lengths, observation.shape[0], observation.device)
        logits, value = self._heads(self._encode(packing.pack(observation)))
        return packing.pad(logits), packing.pad(value)

    def lowered(self, dtype: torch.dtype) -> Self:
        """As `RecurrentNetwork.lowered`."""
        network = copy.deepcopy(self)
        for child in (network.stem, network.rest, network.tower):
            if child is not None:
                child.to(dtype)
        return network

    def _encode(self, observation: Tensor) -> Tensor:
        """Wire dtype or float32 [B, D] -> [B, C, H, W]."""
        image, rest = self._reader.read(observation, compute_dtype(self.stem.weight))
        x = self.stem(image)
        if self.rest is not None:
            x = x + self.rest(rest)[:, :, None, None]
        out: Tensor = self.tower(x).relu()
        return out

    def _heads(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(x.device.type, enabled=False):
            x = x.float()
            return self.policy_head(x), self._value(x)

    def _value(self, x: Tensor) -> Tensor:
        value: Tensor = self.value_head(x).squeeze(1).tanh()
        return value
