"""Finds equal blocks of slices in a layout, such as `own.0.*` ... `own.5.*`, and reads them as [B, count, ...].

Ids of all tables index one joint embedding table; they are read as integers before any cast
(bfloat16 is exact only up to 256).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from common.errors import ConfigError
from common.specs import GameSpec, Slice


class Tables:
    """The joint embedding table: each table of the layout has its own run of rows."""

    def __init__(self, spec: GameSpec) -> None:
        sizes: dict[str, int] = {}
        for part in spec.layout:
            if part.kind == "id":
                sizes[part.table] = max(sizes.get(part.table, 0), part.vocabulary)
        self.sizes = sizes
        self.first: dict[str, int] = {}
        self.rows = 0
        for name, size in sizes.items():
            self.first[name] = self.rows
            self.rows += size


class Blocks(nn.Module):
    """Reads `count` equal blocks, `stride` apart, as ids into the joint table and as numbers.

    Attributes:
        count: blocks. ids, numbers: of each block.
    """

    id_columns: Tensor
    id_first: Tensor
    id_last: Tensor
    number_columns: Tensor

    def __init__(self, names: Sequence[str], spec: GameSpec, tables: Tables) -> None:
        super().__init__()
        blocks = [_block(spec, name) for name in names]
        starts = [block[0].start for block in blocks]
        self.count = len(names)
        self.start = starts[0]
        self.stride = starts[1] - starts[0] if self.count > 1 else sum(part.size for part in blocks[0])
        for number, (name, block) in enumerate(zip(names, blocks)):
            if _shape_of(block) != _shape_of(blocks[0]) or block[0].start != self.start + number * self.stride:
                raise ConfigError(f"The layout's block {name} differs from {names[0]}: expected equal, evenly spaced.")
        id_columns: list[int] = []
        number_columns: list[int] = []
        firsts: list[int] = []
        lasts: list[int] = []
        self.columns = {part.name.removeprefix(names[0]).lstrip("."): part.start - self.start for part in blocks[0]}
        for part in blocks[0]:
            columns = range(part.start - self.start, part.start - self.start + part.size)
            if part.kind == "number":
                number_columns.extend(columns)
                continue
            first = tables.first[part.table]
            id_columns.extend(columns)
            firsts.extend([first] * part.size)
            lasts.extend([first + tables.sizes[part.table] - 1] * part.size)
        self.ids, self.numbers = len(id_columns), len(number_columns)
        for name, values in (("id_columns", id_columns), ("id_first", firsts), ("id_last", lasts)):
            self.register_buffer(name, torch.tensor(values, dtype=torch.int64), persistent=False)
        self.register_buffer("number_columns", torch.tensor(number_columns, dtype=torch.int64), persistent=False)

    def rows(self, observation: Tensor) -> Tensor:
        """The blocks as they came: [B, count, stride]."""
        stop = self.start + self.count * self.stride
        return observation[:, self.start : stop].unflatten(1, (self.count, self.stride))

    def read_ids(self, rows: Tensor) -> Tensor:
        """Rows of the joint table: int64 [B, count, ids]. An id outside its table reads as the nearest inside."""
        ids = rows.index_select(2, self.id_columns).long() + self.id_first
        return torch.minimum(torch.maximum(ids, self.id_first), self.id_last)

    def read_numbers(self, rows: Tensor, dtype: torch.dtype) -> Tensor:
        """[B, count, numbers]."""
        return rows.index_select(2, self.number_columns).to(dtype)


def _block(spec: GameSpec, name: str) -> list[Slice]:
    block = [part for part in spec.layout if part.name == name or part.name.startswith(name + ".")]
    if not block:
        raise ConfigError(f"The network needs a block {name}.* in the layout of {spec.name}, which has none.")
    return sorted(block, key=lambda part: part.start)


def _shape_of(block: list[Slice]) -> list[tuple[int, int, str, str]]:
    return [(part.start - block[0].start, part.size, part.kind, part.table) for part in block]
