"""Two operations whose stock gradients cost more than the network around them (measured on one CPU core)."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


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
        for column in ids.unbind(1):
            total.index_add_(0, column, grad)
        return total, None


class _MeanAndMax(torch.autograd.Function):
    """The stock backward of amax shares the gradient among ties; here each tied row gets it whole.

    Encodings end in a ReLU: ties are zeros, whose gradient the ReLU stops anyway.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        largest = x.amax(-2)
        ctx.save_for_backward(x, largest)
        return x.mean(-2), largest

    @staticmethod
    def backward(ctx: Any, grad_mean: Tensor, grad_max: Tensor) -> Tensor:
        x, largest = ctx.saved_tensors
        grad = (x == largest.unsqueeze(-2)).to(x.dtype)
        grad *= grad_max.unsqueeze(-2)
        return grad.add_(grad_mean.unsqueeze(-2), alpha=1 / x.shape[-2])


def embedding_sum(table: Tensor, ids: Tensor) -> Tensor:
    """Sum of the rows of `table` [R, E] that `ids` int64 [N, K] name: [N, E]."""
    if not torch.is_grad_enabled():  # serving: no bookkeeping
        return F.embedding_bag(ids, table, mode="sum")
    out: Tensor = _EmbeddingSum.apply(table, ids)
    return out


def mean_and_max(x: Tensor) -> tuple[Tensor, Tensor]:
    """[..., n, E] -> mean and maximum over n, each [..., E]."""
    if not torch.is_grad_enabled():
        return x.mean(-2), x.amax(-2)
    out: tuple[Tensor, Tensor] = _MeanAndMax.apply(x)
    return out
