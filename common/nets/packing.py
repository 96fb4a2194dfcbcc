"""Padded [T, B, ...] <-> packed rows: sessions sorted by length, longest first, step after step, no padding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Packing:
    """Where the valid rows of a padded batch are.

    Attributes:
        order: int64 [B], sessions from the longest to the shortest.
        rows: int64 [N], positions of the packed rows in the flattened [T * B].
        batch_sizes: rows of each step that any session reaches.
        shape: (T, B).
    """

    order: Tensor
    rows: Tensor
    batch_sizes: list[int]
    shape: tuple[int, int]

    def pack(self, padded: Tensor) -> Tensor:
        """[T, B, ...] -> [N, ...]."""
        return padded.flatten(0, 1).index_select(0, self.rows)

    def pad(self, packed: Tensor) -> Tensor:
        """[N, ...] -> [T, B, ...], zeros where padded."""
        steps, sessions = self.shape
        flat = packed.new_zeros((steps * sessions, *packed.shape[1:])).index_copy(0, self.rows, packed)
        return flat.unflatten(0, (steps, sessions))


def make_packing(lengths: Tensor, steps: int, device: torch.device) -> Packing:
    """Packing of B sessions of `lengths` (int64 [B], CPU) inside T = `steps` padded steps."""
    sessions = lengths.shape[0]
    sorted_lengths, order = torch.sort(lengths, descending=True, stable=True)
    valid = torch.arange(steps)[:, None] < sorted_lengths[None, :]  # (T, B), each row's ones at its left end
    step, place = valid.nonzero(as_tuple=True)
    rows = step * sessions + order[place]
    batch_sizes = [n for n in valid.sum(1).tolist() if n]
    return Packing(order.to(device), rows.to(device), batch_sizes, (steps, sessions))
