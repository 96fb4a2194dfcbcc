"""Equal blocks of slices in a layout, such as `own.0.*` ... `own.5.*`, read as [B, count, ...], and operations on them.

Ids are read as integers before any cast: bfloat16 is exact only up to 256. `embedding_sum`, `mean_and_max` and
`dot_products` have gradients of their own: the stock ones cost more than the network around them (measured on one CPU
core).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec, Slice, block_shape


class _EmbeddingSum(torch.autograd.Function):
    """The stock backward sorts all ids; adding column by column does not."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.rows, ctx.dtype = table.shape[0], table.dtype
        return F.embedding_bag(ids, table, mode="sum")

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (ids,) = ctx.saved_tensors
        total = torch.zeros(ctx.rows, grad.shape[1], dtype=ctx.dtype, device=grad.device)
        grad = grad.to(ctx.dtype).contiguous()
        for column in ids.t().contiguous():
            total.index_add_(0, column, grad)
        return total, None


class _MeanAndMax(torch.autograd.Function):
    """As amax has it, tied rows share the gradient: equal entities, such as foes that were not met, are tied."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        largest = x.amax(-2)
        ctx.save_for_backward(x, largest)
        return x.mean(-2), largest

    @staticmethod
    def backward(ctx: Any, grad_mean: Tensor, grad_max: Tensor) -> Tensor:
        x, largest = ctx.saved_tensors
        tied = torch.eq(x, largest.unsqueeze(-2), out=torch.empty_like(x))  # to bool it takes six times as long
        mean = (grad_mean / x.shape[-2]).unsqueeze(-2)
        return torch.addcmul(mean, tied, (grad_max / tied.sum(-2)).unsqueeze(-2))


class _DotProducts(torch.autograd.Function):
    """The stock backward makes the keys' gradient transposed, which takes small products several times as long."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor) -> Tensor:
        ctx.save_for_backward(queries, keys)
        return queries @ keys.transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        queries, keys = ctx.saved_tensors
        return grad @ keys, grad.transpose(1, 2) @ queries


def embedding_sum(table: Tensor, ids: Tensor) -> Tensor:
    """Sum of the rows of `table` [R, E] that `ids` int64 [N, K] name: [N, E]."""
    if not torch.is_grad_enabled():  # serving: no autograd
        return F.embedding_bag(ids, table, mode="sum")
    out: Tensor = _EmbeddingSum.apply(table, ids)
    return out


def mean_and_max(x: Tensor) -> tuple[Tensor, Tensor]:
    """[..., n, E] -> mean and maximum over n, each [..., E]."""
    if not torch.is_grad_enabled():
        return x.mean(-2), x.amax(-2)
    out: tuple[Tensor, Tensor] = _MeanAndMax.apply(x)
    return out


def dot_products(queries: Tensor, keys: Tensor) -> Tensor:
    """[N, K, E] and [N, U, E] -> [N, K, U], of each query with each key of its row."""
    if not torch.is_grad_enabled():
        return queries @ keys.transpose(1, 2)
    out: Tensor = _DotProducts.apply(queries, keys)
    return out


class ColumnReader:
    """Reads columns as views of contiguous runs, at a tenth of the cost of gathering single columns."""

    def __init__(self, parts: Sequence[Slice], start: int) -> None:
        self.count = sum(part.size for part in parts)
        self._runs: list[tuple[int, int]] = []
        for part in sorted(parts, key=lambda part: part.start):
            begin, stop = part.start - start, part.start - start + part.size
            if self._runs and self._runs[-1][1] == begin:
                begin = self._runs.pop()[0]
            self._runs.append((begin, stop))

    def read(self, rows: Tensor) -> Tensor:
        """[..., width] -> [..., count]."""
        if not self._runs:
            return rows[..., :0]
        views = [rows[..., begin:stop] for begin, stop in self._runs]
        return views[0] if len(views) == 1 else torch.cat(views, dim=-1)


class IdReader(nn.Module):
    """Reads id columns as rows of one joint embedding table, in which each named table has a run of rows.

    Attributes:
        count: id columns. table_rows: rows of the joint table. table_runs: first row and rows of each named table.
    """

    first: Tensor
    last: Tensor

    def __init__(self, parts: Sequence[Slice], start: int = 0) -> None:
        super().__init__()
        ids = sorted((part for part in parts if part.kind == "id"), key=lambda part: part.start)
        if unknown := [part.name for part in ids if part.vocabulary < 1]:
            raise ConfigError(f"The ids {unknown[0]} have no vocabulary to embed: expected how many ids there are.")
        sizes: dict[str, int] = {}
        for part in ids:
            sizes[part.table] = max(sizes.get(part.table, 0), part.vocabulary)
        begin = dict(zip(sizes, accumulate(sizes.values(), initial=0)))
        self.table_rows = sum(sizes.values())
        self.table_runs = {name: (begin[name], rows) for name, rows in sizes.items()}
        self._columns = ColumnReader(ids, start)
        self.count = self._columns.count
        first = [begin[part.table] for part in ids for _ in range(part.size)]
        last = [begin[part.table] + sizes[part.table] - 1 for part in ids for _ in range(part.size)]
        for name, values in (("first", first), ("last", last)):
            self.register_buffer(name, torch.tensor(values, dtype=torch.int64), persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        """Wire dtype or float32 [..., width] -> int64 [..., count]. An id outside its table is clamped."""
        ids = self._columns.read(rows).long() + self.first
        return torch.minimum(torch.maximum(ids, self.first), self.last)


def number_columns(parts: Sequence[Slice], start: int = 0) -> ColumnReader:
    """The number columns of `parts`."""
    return ColumnReader([part for part in parts if part.kind == "number"], start)


class EntityBlocks(nn.Module):
    """`count` equal blocks, `stride` numbers apart. `parts`: slices of the first one. Raises ConfigError."""

    def __init__(self, names: Sequence[str], spec: GameSpec) -> None:
        super().__init__()
        blocks = [spec.block(name) for name in names]
        if missing := [name for name, block in zip(names, blocks) if not block]:
            raise ConfigError(
                f"The network needs a block {missing[0]}.* in the layout of {spec.name}, which has none. "
                "Set network.name: mlp_lstm, which takes any layout."
            )
        self.names, self.parts = tuple(names), blocks[0]
        self.count, self.start = len(names), blocks[0][0].start
        self.stride = blocks[1][0].start - self.start if self.count > 1 else sum(part.size for part in self.parts)
        for number, (name, block) in enumerate(zip(names, blocks)):
            equal = block_shape(block, name) == block_shape(self.parts, names[0])
            if not equal or block[0].start != self.start + number * self.stride:
                raise ConfigError(f"The layout's block {name} differs from {names[0]}: expected equal, evenly spaced.")
        width = self.parts[-1].start + self.parts[-1].size - self.start
        stop = self.start + self.count * self.stride
        self._width = width
        self._apart = self.stride < width or stop > spec.observation_size  # interleaved: no view has all of them
        self.ids = IdReader(self.parts, self.start)
        self.numbers = number_columns(self.parts, self.start)

    def column(self, name: str) -> int:
        """Position of slice `name` inside a block; -1 where there is none."""
        for part in self.parts:
            if part.name == f"{self.names[0]}.{name}":
                return part.start - self.start
        return -1

    def forward(self, observation: Tensor) -> Tensor:
        """[B, D] -> the blocks, not converted: [B, count, width], where width may have other columns at its end."""
        if self._apart:
            starts = [self.start + number * self.stride for number in range(self.count)]
            return torch.stack([observation[:, start : start + self._width] for start in starts], dim=1)
        stop = self.start + self.count * self.stride
        return observation[:, self.start : stop].unflatten(1, (self.count, self.stride))


class EntityEncoder(nn.Module):
    """Encodes all entities of a kind: summed embeddings of ids, numbers, one hidden layer.

    The embedding has the width of the hidden layer, so adding it equals a linear layer on one-hot ids.
    """

    def __init__(self, blocks: EntityBlocks, size: int, embedded: int | None = None) -> None:
        """`embedded`: numbers that the caller makes of the ids, behind the others; None: a table here embeds them."""
        super().__init__()
        rows = blocks.ids.table_rows if embedded is None else 0
        numbers = blocks.numbers.count + (embedded or 0)
        self.table = nn.Parameter(torch.randn(rows, size) * 0.1) if rows else None
        self.numbers = nn.Linear(numbers, size) if numbers else None
        self.output = nn.Linear(size, size)

    def forward(self, ids: Tensor, numbers: Tensor) -> Tensor:
        """ids: int64 [N, K]; numbers: [N, M], contiguous. Returns [N, size]."""
        parts = [] if self.numbers is None else [self.numbers(numbers)]
        if self.table is not None:
            parts.append(embedding_sum(self.table, ids).to(numbers.dtype))
        hidden = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        encoded: Tensor = torch.relu(self.output(torch.relu(hidden)))
        return encoded
