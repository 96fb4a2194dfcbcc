"""Masked sampling by Gumbel-max: argmax(logits + noise) over legal actions is a draw from their softmax."""

from __future__ import annotations

import warnings
from collections.abc import Callable

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


def sample_packed(logits: Tensor, value: Tensor, mask: Tensor, noise: Tensor) -> Tensor:
    """`sample`, its results and `value` [B] as float32 [3, B]: one copy to the host."""
    action, log_prob = sample(logits.float(), mask, noise)
    return torch.stack((action.to(torch.float32), log_prob, value.float()))


@torch.inference_mode()
def recorded_sampler(num_actions: int, device: torch.device) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """`sample_packed` without Python between its operations."""
    logits = torch.zeros(2, num_actions, device=device)
    example = (logits, logits[:, 0], logits == 0, logits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # recording tells that it will be removed one day
        recorded: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = torch.jit.trace(
            sample_packed, example, check_trace=False
        )
    return recorded
