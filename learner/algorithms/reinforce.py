"""REINFORCE with a learned baseline (Williams 1992), the simplest thing that can work; for comparison."""

from __future__ import annotations

import torch
from torch import Tensor

from simul.learner.algorithms.base import Loss, Settings, Trajectories, ValidRows, evaluate_actions, figures, value_loss
from simul.learner.ranks import ALONE, Ranks


@torch.no_grad()
def returns(trajectories: Trajectories, value: Tensor) -> Tensor:
    """G_t = r_t + discount_t G_{t+1}, float32 [T, B]; behind the last valid row stands the bootstrap value.

    Args:
        trajectories: T, B as in `Trajectories`.
        value: float32 [T + 1, B].
    """
    result = torch.zeros_like(value)
    behind = value[-1]
    for t in range(value.shape[0] - 2, -1, -1):
        bootstrap = torch.where(trajectories.discount[t] > 0, behind, 0.0)
        here = trajectories.reward[t] + trajectories.discount[t] * bootstrap
        behind = torch.where(trajectories.valid[t], here, value[t])
        result[t] = behind
    return result[:-1]


def reinforce_loss(
    trajectories: Trajectories, logits: Tensor, value: Tensor, settings: Settings, ranks: Ranks = ALONE
) -> Loss:
    """-(G - V) log pi(a), value loss and entropy bonus. No correction for policy lag."""
    rows = ValidRows(trajectories.valid, ranks)
    evaluated = evaluate_actions(trajectories, logits)
    target = returns(trajectories, value)
    residual, of_target = rows.moments(target - value[:-1], target)
    policy = -rows.part((target - value[:-1].detach()) * evaluated.log_prob)
    values = value_loss(value[:-1], target, rows)
    entropy = rows.part(evaluated.entropy)
    total = policy + settings.value_coefficient * values - settings.entropy_coefficient * entropy
    named = {"policy_loss": policy, "value_loss": values, "clip_fraction": torch.zeros_like(policy)}
    shown = figures(rows, evaluated, residual, of_target, **named)
    return Loss(total, shown, evaluated.log_ratio.detach())
