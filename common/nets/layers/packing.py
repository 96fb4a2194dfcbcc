"""Padded [T, B, ...] <-> packed rows: sessions sorted by length, longest first, step after step.

The number of packed rows is rounded up, by repeating row 0 behind the N valid ones: low-precision products
are compiled anew for every size they meet, which costs milliseconds and memory each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

ROWS_MULTIPLE = 512


@dataclass(frozen=True)
class Packing:
    """Where the valid rows of a padded batch are.

    Attributes:
        order: int64 [B], sessions from the longest to the shortest.
        rows: int64 [P], positions of the packed rows in the flattened [T * B]; the first N are valid.
        valid: N, the sum of `batch_sizes`.
        batch_sizes: rows of each step that any session reaches.
        shape: (T, B).
    """

    order: Tensor
    rows: Tensor
    valid: int
    batch_sizes: list[int]
    shape: tuple[int, int]

    def pack(self, padded: Tensor) -> Tensor:
        """[T, B, ...] -> [P, ...]."""
        return padded.flatten(0, 1).index_select(0, self.rows)

    def pad(self, packed: Tensor) -> Tensor:
        """[P, ...] -> [T, B, ...], zeros where padded."""
        steps, sessions = self.shape
        flat = packed.new_zeros((steps * sessions, *packed.shape[1:]))
        flat = flat.index_copy(0, self.rows[: self.valid], packed[: self.valid])
        return flat.unflatten(0, (steps, sessions))


def make_packing(lengths: Tensor, steps: int, device: torch.device) -> Packing:
    """Packing of B sessions of `lengths` (int64 [B], CPU) inside T = `steps` padded steps."""
    sessions = lengths.shape[0]
    sorted_lengths, order = torch.sort(lengths, descending=True, stable=True)
    valid = torch.arange(steps)[:, None] < sorted_lengths[None, :]  # (T, B), each row's ones at its left end
    step, place = valid.nonzero(as_tuple=True)
    rows = step * sessions + order[place]
    batch_sizes = [n for n in valid.sum(1).tolist() if n]
    padded = F.pad(rows, (0, -len(rows) % ROWS_MULTIPLE))
    return Packing(order.to(device), padded.to(device), len(rows), batch_sizes, (steps, sessions))
