"""Host buffers that a batch is gathered into: what the device reads, without another copy on the CPU."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.protocol.specs import GameSpec

ALIGNMENT = 64  # bytes: whole lines of the processor's cache, and what every vector load may ask for


class Inputs(NamedTuple):
    """Rows of a batch as tensors, named as in `Staging`; mask: bool."""

    observation: Tensor
    mask: Tensor
    read_rows: Tensor
    write_rows: Tensor
    noise: Tensor
    temperature: Tensor


class Packing:
    """Where the fields of `rows` rows lie in one run of bytes: one copy brings them to a device.

    Observations come last, so that a batch with rows to spare is a shorter copy: its first `stop(n)` bytes.
    """

    def __init__(self, rows: int, spec: GameSpec) -> None:
        observation = getattr(torch, spec.observation_dtype)
        self._row_bytes = spec.observation_size * observation.itemsize
        self._shapes: dict[str, tuple[int, torch.dtype, tuple[int, ...]]] = {}
        offset = 0
        for name, dtype, shape in (
            ("read_rows", torch.int64, (rows,)),
            ("write_rows", torch.int64, (rows,)),
            ("temperature", torch.float32, (rows,)),
            ("noise", torch.float32, (rows, spec.num_actions)),
            ("mask", torch.bool, (rows, spec.num_actions)),
            ("observation", observation, (rows, spec.observation_size)),
        ):
            self._shapes[name] = offset, dtype, shape
            offset += -(-math.prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
        self.size = offset

    def stop(self, rows: int) -> int:
        """Bytes that hold the first `rows` observations and all of everything else."""
        return self._shapes["observation"][0] + rows * self._row_bytes

    def views(self, memory: Tensor) -> Inputs:
        """The fields in `memory`, uint8 [`size`]; they share it."""
        fields = {}
        for name, (offset, dtype, shape) in self._shapes.items():
            stop = offset + math.prod(shape) * dtype.itemsize
            fields[name] = memory[offset:stop].view(dtype).view(shape)
        return Inputs(**fields)


class Staging:
    """Rows of one batch, the same memory for every size: what was just used is still in the processor's cache.

    observation: wire dtype [capacity, D]; mask: uint8 [capacity, A], and `legal`, the same memory as bool;
    read_rows, write_rows: int64 [capacity]; noise: float32 [capacity, A]; temperature: float32 [capacity].
    Rows that a batch leaves free keep whatever finite numbers they hold.
    """

    def __init__(self, capacity: int, spec: GameSpec, memory: Tensor | None = None) -> None:
        """`memory`: uint8 [`Packing(capacity, spec).size`] on the host to lie in; None: its own."""
        self.capacity = capacity
        packing = Packing(capacity, spec)
        fields = packing.views(torch.empty(packing.size, dtype=torch.uint8) if memory is None else memory)
        self.observation: NDArray[Any] = fields.observation.zero_().numpy()
        self.mask: NDArray[np.uint8] = fields.mask.fill_(True).view(torch.uint8).numpy()
        self.legal: NDArray[np.bool_] = self.mask.view(np.bool_)
        self.read_rows: NDArray[np.int64] = fields.read_rows.zero_().numpy()
        self.write_rows: NDArray[np.int64] = fields.write_rows.zero_().numpy()
        self.noise: NDArray[np.float32] = fields.noise.zero_().numpy()
        self.temperature: NDArray[np.float32] = fields.temperature.fill_(1.0).numpy()
        self._views: dict[tuple[int, int], Inputs] = {}

    def views(self, rows: slice) -> Inputs:
        """Tensors that share the buffers' memory."""
        views = self._views.get((rows.start, rows.stop))
        if views is None:
            arrays = (self.observation, self.legal, self.read_rows, self.write_rows, self.noise, self.temperature)
            views = self._views[rows.start, rows.stop] = Inputs(*(torch.from_numpy(array[rows]) for array in arrays))
        return views
