"""V-trace targets and the IMPALA loss (Espeholt et al. 2018, arXiv:1802.01561, section 4.1, eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simul.learner.algorithms.base import Loss, Settings, Trajectories, ValidRows, evaluate_actions, figures, value_loss
from simul.learner.ranks import ALONE, Ranks


@dataclass(frozen=True)
class Targets:
    """Constants of an update, without gradient.

    Attributes:
        value: float32 [T, B], v_s of eq. 1.
        advantage: float32 [T, B], q_s - V(x_s) with q_s = r_s + discount (lambda v_{s+1} + (1 - lambda) V(x_{s+1})).
            Not yet weighted by rho_s. On policy it is GAE(lambda) (Schulman et al. 2016).
    """

    value: Tensor
    advantage: Tensor


@torch.no_grad()
def vtrace_targets(trajectories: Trajectories, log_ratio: Tensor, value: Tensor, settings: Settings) -> Targets:
    """Eq. 1 with c_i = lambda min(c_clip, ratio), as remark 2 of the paper allows.

        delta_t = rho_t (r_t + discount_t V(x_{t+1}) - V(x_t))
        v_t - V(x_t) = delta_t + discount_t c_t (v_{t+1} - V(x_{t+1}))

    Args:
        trajectories: T, B as in `Trajectories`.
        log_ratio: float32 [T, B], log(current / behaviour).
        value: float32 [T + 1, B]; the row behind a column's last valid row only bootstraps.
        settings: `gae_lambda`, `rho_clip`, `c_clip`.
    """
    valid, discount = trajectories.valid, trajectories.discount
    ratio = log_ratio.exp()
    rho, c = ratio.clamp(max=settings.rho_clip), settings.gae_lambda * ratio.clamp(max=settings.c_clip)
    next_value = torch.where(discount > 0, value[1:], 0.0)
    td_error = torch.where(valid, trajectories.reward + discount * next_value - value[:-1], 0.0)
    decay = torch.where(valid, discount * c, 0.0)
    correction = torch.zeros_like(value)  # v - V, (T + 1, B); 0 at the bootstrap row
    behind = correction[-1]
    for delta, factor, here in zip(*(reversed(x.unbind()) for x in (rho * td_error, decay, correction[:-1]))):
        behind = torch.addcmul(delta, factor, behind, out=here)
    advantage = td_error + discount * settings.gae_lambda * correction[1:]
    return Targets((value + correction)[:-1], torch.where(valid, advantage, 0.0))


def vtrace_loss(
    trajectories: Trajectories, logits: Tensor, value: Tensor, settings: Settings, ranks: Ranks = ALONE
) -> Loss:
    """IMPALA's policy gradient: rho_s grad log pi(a_s) (q_s - V(x_s)), plus value loss and entropy bonus."""
    rows = ValidRows(trajectories.valid, ranks)
    evaluated = evaluate_actions(trajectories, logits)
    targets = vtrace_targets(trajectories, evaluated.log_ratio, value, settings)
    residual, target = rows.moments(targets.value - value[:-1], targets.value)
    rho = evaluated.log_ratio.detach().exp().clamp(max=settings.rho_clip)
    policy = -rows.part(rho * targets.advantage * evaluated.log_prob)
    values = value_loss(value[:-1], targets.value, rows)
    entropy = rows.part(evaluated.entropy)
    total = policy + settings.value_coefficient * values - settings.entropy_coefficient * entropy
    clipped = rows.part((evaluated.log_ratio.exp() > settings.rho_clip).float())
    named = {"policy_loss": policy, "value_loss": values, "clip_fraction": clipped}
    shown = figures(rows, evaluated, residual, target, **named)
    return Loss(total, shown, evaluated.log_ratio.detach())
