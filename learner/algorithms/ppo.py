"""PPO's clipped surrogate (Schulman et al. 2017, arXiv:1707.06347, eq. 7) with V-trace targets and advantages."""

from __future__ import annotations

import torch
from torch import Tensor

from simul.learner.algorithms.base import (
    Loss,
    Settings,
    Trajectories,
    evaluate,
    figures,
    masked_mean,
    normalise,
    value_loss,
)
from simul.learner.algorithms.vtrace import vtrace_targets


def ppo_loss(trajectories: Trajectories, logits: Tensor, value: Tensor, settings: Settings) -> Loss:
    """min(ratio A, clip(ratio, 1 - clip, 1 + clip) A), value loss and entropy bonus.

    The ratio is against the log-prob recorded at act time, whatever version acted; V-trace corrects what lies behind
    a step for the policy's change since then. Advantages are normalised over the valid rows.
    """
    valid = trajectories.valid
    evaluated = evaluate(trajectories, logits)
    targets = vtrace_targets(trajectories, evaluated.log_ratio, value, settings)
    advantage = normalise(targets.advantage, valid)
    ratio = evaluated.log_ratio.exp()
    clipped_ratio = ratio.clamp(1 - settings.clip, 1 + settings.clip)
    policy = -masked_mean(torch.minimum(ratio * advantage, clipped_ratio * advantage), valid)
    values = value_loss(value[:-1], targets.value, valid)
    entropy = masked_mean(evaluated.entropy, valid)
    total = policy + settings.value_coefficient * values - settings.entropy_coefficient * entropy
    outside = masked_mean((ratio != clipped_ratio).float(), valid)
    named = {"policy_loss": policy, "value_loss": values, "clip_fraction": outside}
    shown = figures(trajectories, evaluated, value[:-1], targets.value, **named)
    return Loss(total, shown, evaluated.log_ratio.detach())
