"""Observations at mean 0 and variance 1, by running statistics that are part of the weights.

Server, learner, evaluation and `load_policy` read the statistics from the buffers of the network that they loaded. Only
the learner writes them: `simul.learner.training.normalization`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.errors import ConfigError
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.layers.inputs import EntityInputs
from simul.common.protocol.specs import EntityGroup, GameSpec

CLIP = 10.0
EPSILON = 1e-8  # added to a variance


class NormalizedNetwork(RecurrentNetwork):
    """`network` behind clip((observation - mean) / sqrt(variance + EPSILON), -CLIP, CLIP).

    Ids of the layout, and the numbers that say which entities are present, stay as they are. Buffers, float32 [D]:
    `observation_mean` and `observation_variance`, at first 0 and 1; the same in each block of a group of entities.

    Attributes:
        groups: of the game's entities, whose blocks share their statistics.
    """

    observation_mean: Tensor
    observation_variance: Tensor
    kept: Tensor | None

    def __init__(self, network: RecurrentNetwork, spec: GameSpec) -> None:
        """Raises ConfigError for images, which must stay what they are."""
        super().__init__()
        if spec.observation_dtype == "uint8":
            raise ConfigError(
                f"network.normalize_observations: {spec.name} observes images, which networks scale to [0, 1] "
                "themselves. Leave it out."
            )
        self.network = network
        self.groups = tuple(_group_columns(spec, group) for group in spec.entities)
        self.state_size = network.state_size
        self.predicts_opponent = network.predicts_opponent
        self.register_buffer("observation_mean", torch.zeros(spec.observation_size))
        self.register_buffer("observation_variance", torch.ones(spec.observation_size))
        readers = [part for part in network.modules() if isinstance(part, EntityInputs)]
        masks = [column for part in readers for column in part.present_columns]
        self.register_buffer("kept", _columns_kept(spec, masks), persistent=False)

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.forward`."""
        answer: tuple[Tensor, Tensor, Tensor] = self.network(self._normalized(observation), mask, state)
        return answer

    def unroll(self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As `RecurrentNetwork.unroll`."""
        return self.network.unroll(self._normalized(observation), mask, state, lengths)

    def unroll_predicting(
        self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor, labelled: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.unroll_predicting`."""
        return self.network.unroll_predicting(self._normalized(observation), mask, state, lengths, labelled)

    def initial_state(self, batch: int) -> Tensor:
        """As `RecurrentNetwork.initial_state`."""
        return self.network.initial_state(batch)

    def lowered(self, dtype: torch.dtype) -> NormalizedNetwork:
        """As `RecurrentNetwork.lowered`; the statistics stay float32."""
        copied = super().lowered(dtype)
        assert isinstance(copied, NormalizedNetwork)
        copied.network = self.network.lowered(dtype)
        return copied

    def _normalized(self, observation: Tensor) -> Tensor:
        deviation = (self.observation_variance + EPSILON).sqrt()
        whole = observation.float()
        normalized = ((whole - self.observation_mean) / deviation).clamp(-CLIP, CLIP)
        return normalized if self.kept is None else torch.where(self.kept, whole, normalized)


class GroupColumns(NamedTuple):
    """int64 [count, width], columns of each block; int64 [count], where each says that it holds an entity, or None."""

    blocks: NDArray[np.int64]
    present: NDArray[np.int64] | None


def _group_columns(spec: GameSpec, group: EntityGroup) -> GroupColumns:
    blocks = [spec.block(f"{group.name}.{i}") for i in range(group.count)]
    columns = [[column for part in block for column in range(part.start, part.start + part.size)] for block in blocks]
    said = [
        part.start
        for i, block in enumerate(blocks)
        for part in block
        if part.name == f"{group.name}.{i}.{group.present}"
    ]
    return GroupColumns(np.array(columns, np.int64), np.array(said, np.int64) if said else None)


def _columns_kept(spec: GameSpec, masks: Sequence[int]) -> Tensor | None:
    """bool [D], True for columns that are no quantities; None where there are none. `masks`: that a network reads."""
    present = {f"{group.name}.{i}.{group.present}" for group in spec.entities for i in range(group.count)}
    kept = torch.zeros(spec.observation_size, dtype=torch.bool, device="cpu")  # also of a network_outline
    kept[list(masks)] = True
    for part in spec.layout:
        if part.kind == "id" or part.name in present:
            kept[part.start : part.start + part.size] = True
    return kept if kept.any() else None
