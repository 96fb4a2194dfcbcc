"""Masked sampling by Gumbel-max: argmax(logits + noise) over legal actions is a draw from their softmax."""

from __future__ import annotations

import torch
from torch import Tensor

ILLEGAL = torch.finfo(torch.float32).min


def sample(logits: Tensor, mask: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Choose an action for every row.

    Args:
        logits: float32 [B, A].
        mask: bool [B, A], True = legal; at least one in every row.
        noise: float32 [B, A], standard Gumbel, or zeros for the most probable action.

    Returns:
        action: int64 [B]; log_prob: float32 [B] of the masked distribution.
    """
    legal = torch.where(mask, logits, ILLEGAL)
    log_probs = torch.log_softmax(legal, dim=-1)  # (B, A)
    action = torch.where(mask, logits + noise, ILLEGAL).argmax(dim=-1)  # (B,)
    return action, log_probs.gather(-1, action[:, None]).squeeze(-1)
