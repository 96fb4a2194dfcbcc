"""A transformer encoder over few entities (Vaswani et al. 2017, arXiv:1706.03762), normalised before each part.

No dropout and no positions: the order of entities means nothing.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from simul.common.errors import ConfigError


class AttentionBlock(nn.Module):
    """x + attention(norm(x)), then x + two linear layers(norm(x)); the hidden one is twice as wide."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attended = nn.Linear(width, width)
        self.hidden, self.output = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor, tokens: int, mask: Tensor | None) -> Tensor:
        """Tokens of all rows, one row behind the other, [B * N, E] -> the same shape.

        Args:
            x: products over two dimensions run with packed weights where a server has them.
            tokens: N.
            mask: bool [B, 1, 1, N], True = attended to; None: all are.
        """
        projected: Tensor = self.query_key_value(self.first_norm(x))
        by_head = projected.unflatten(0, (-1, tokens)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = by_head.unbind(0)  # (B, heads, N, E / heads)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.attended(mixed.transpose(1, 2).flatten(2).flatten(0, 1))
        return x + self.output(self.hidden(self.second_norm(x)).relu())


class Transformer(nn.Module):
    """`layers` blocks, and a last normalisation. Raises ConfigError where the heads do not divide the width."""

    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ConfigError(f"a transformer of {heads} heads needs a width that {heads} divides, got {width}")
        self.blocks = nn.ModuleList(AttentionBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor, present: Tensor | None) -> Tensor:
        """[B, N, E] -> the same shape. `present`: bool [B, N], True for at least one of a row; None: all are."""
        mask = None if present is None else present[:, None, None, :]
        count = tokens.shape[1]
        x = tokens.flatten(0, 1)
        for block in self.blocks:
            x = block(x, count, mask)
        out: Tensor = self.norm(x).unflatten(0, (-1, count))
        return out
