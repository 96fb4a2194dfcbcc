"""Host buffers that a batch is gathered into: what the device reads, without another copy on the CPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from common.specs import GameSpec


class Inputs(NamedTuple):
    """Rows of a batch as tensors, named as in `Staging`; mask: bool."""

    observation: Tensor
    mask: Tensor
    read_rows: Tensor
    write_rows: Tensor
    noise: Tensor
    temperature: Tensor


class Staging:
    """Rows of one batch, the same memory for every size: what was just used is still in the processor's cache.

    observation: wire dtype [capacity, D]; mask: uint8 [capacity, A], and `legal`, the same memory as bool;
    read_rows, write_rows: int64 [capacity]; noise: float32 [capacity, A]; temperature: float32 [capacity].
    Rows that a batch leaves free keep whatever finite numbers they hold.
    """

    def __init__(self, capacity: int, spec: GameSpec) -> None:
        self.capacity = capacity
        self.observation: NDArray[Any] = np.zeros((capacity, spec.observation_size), spec.dtype())
        self.mask = np.ones((capacity, spec.num_actions), np.uint8)
        self.legal = self.mask.view(np.bool_)
        self.read_rows = np.zeros(capacity, np.int64)
        self.write_rows = np.zeros(capacity, np.int64)
        self.noise = np.zeros((capacity, spec.num_actions), np.float32)
        self.temperature = np.ones(capacity, np.float32)
        self._views: dict[tuple[int, int], Inputs] = {}

    def views(self, rows: slice) -> Inputs:
        """Tensors that share the buffers' memory."""
        views = self._views.get((rows.start, rows.stop))
        if views is None:
            arrays = (self.observation, self.legal, self.read_rows, self.write_rows, self.noise, self.temperature)
            views = self._views[rows.start, rows.stop] = Inputs(*(torch.from_numpy(array[rows]) for array in arrays))
        return views
