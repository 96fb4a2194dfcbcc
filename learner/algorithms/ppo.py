"""PPO's clipped surrogate (Schulman et al. 2017, arXiv:1707.06347, eq. 7) with V-trace targets and advantages."""

from __future__ import annotations

import torch
from torch import Tensor

from simul.learner.algorithms.base import (
    Loss,
    Settings,
    Trajectories,
    ValidRows,
    evaluate_actions,
    figures,
    normalise,
    value_loss,
)
from simul.learner.algorithms.vtrace import vtrace_targets
from simul.learner.ranks import ALONE, Ranks


def ppo_loss(
    trajectories: Trajectories, logits: Tensor, value: Tensor, settings: Settings, ranks: Ranks = ALONE
) -> Loss:
    """min(ratio A, clip(ratio, 1 - clip, 1 + clip) A), value loss and entropy bonus.

    The ratio is against the log-prob recorded at act time, whatever version acted; V-trace corrects what lies behind
    a step for the policy's change since then. Advantages are normalised over the valid rows.
    """
    rows = ValidRows(trajectories.valid, ranks)
    evaluated = evaluate_actions(trajectories, logits)
    targets = vtrace_targets(trajectories, evaluated.log_ratio, value, settings)
    of_advantage, residual, target = rows.moments(targets.advantage, targets.value - value[:-1], targets.value)
    advantage = normalise(targets.advantage, of_advantage)
    ratio = evaluated.log_ratio.exp()
    clipped_ratio = ratio.clamp(1 - settings.clip, 1 + settings.clip)
    policy = -rows.part(torch.minimum(ratio * advantage, clipped_ratio * advantage))
    values = value_loss(value[:-1], targets.value, rows)
    entropy = rows.part(evaluated.entropy)
    total = policy + settings.value_coefficient * values - settings.entropy_coefficient * entropy
    outside = rows.part((ratio != clipped_ratio).float())
    shown = figures(
        rows, evaluated, residual, target, policy_loss=policy, value_loss=values, clip_fraction=outside
    )  # fmt: skip
    return Loss(total, shown, evaluated.log_ratio.detach())
