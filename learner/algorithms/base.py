"""What every algorithm takes and gives. T = unroll length, B = unrolls, A = actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

LOG_RATIO_LIMIT = 20.0  # e^20: no finite loss becomes infinite by one stray action


@dataclass(frozen=True)
class Trajectories:
    """Recorded facts of B unrolls; anything where `valid` is False is padding and must not matter.

    Attributes:
        mask: bool [T, B, A], True = legal.
        action: int64 [T, B]. reward: float32 [T, B], earned by the action of the same row.
        behaviour_log_prob: float32 [T, B], recorded when the action was sampled.
        discount: float32 [T, B]; 0 at the last step of an episode that terminated.
        valid: bool [T, B], rows to learn from; a run from row 0 in each column. The bootstrap row is not one.
    """

    mask: Tensor
    action: Tensor
    reward: Tensor
    behaviour_log_prob: Tensor
    discount: Tensor
    valid: Tensor


@dataclass(frozen=True)
class Settings:
    """Plain numbers of an algorithm; LearnerConfig explains each."""

    gae_lambda: float = 0.95
    clip: float = 0.2
    rho_clip: float = 1.0
    c_clip: float = 1.0
    value_coefficient: float = 0.5
    entropy_coefficient: float = 0.01


@dataclass(frozen=True)
class Loss:
    """`total` to differentiate; figures to report and log(current / behaviour) float32 [T, B], both detached."""

    total: Tensor
    figures: dict[str, Tensor]
    log_ratio: Tensor


# (trajectories, logits float32 [T, B, A], value float32 [T + 1, B], settings) -> Loss.
# value[t]: of row t; the row after each column's last valid one holds its bootstrap value.
Algorithm = Callable[[Trajectories, Tensor, Tensor, Settings], Loss]


@dataclass(frozen=True)
class Evaluated:
    """The current policy's figures of the recorded actions.

    Attributes:
        log_prob: float32 [T, B] of the recorded action.
        log_ratio: float32 [T, B], log(current / behaviour), 0 where padded.
        entropy: float32 [T, B], over legal actions.
    """

    log_prob: Tensor
    log_ratio: Tensor
    entropy: Tensor


def evaluate(trajectories: Trajectories, logits: Tensor) -> Evaluated:
    """Log-softmax over legal actions only. `logits`: float32 [T, B, A], unmasked."""
    legal = trajectories.mask | ~trajectories.valid[..., None]  # padded rows: all legal, so that nothing is infinite
    log_probs = torch.log_softmax(logits.masked_fill(~legal, -torch.inf), dim=-1)  # (T, B, A)
    finite = log_probs.masked_fill(~legal, 0.0)
    log_prob = finite.gather(-1, trajectories.action[..., None]).squeeze(-1)
    log_ratio = torch.where(trajectories.valid, log_prob - trajectories.behaviour_log_prob, 0.0)
    log_ratio = log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    entropy = -(finite * log_probs.exp()).sum(-1)
    return Evaluated(log_prob, log_ratio, entropy)


def masked_mean(x: Tensor, valid: Tensor) -> Tensor:
    """Mean of float32 [T, B] over valid rows."""
    return torch.where(valid, x, 0.0).sum() / valid.sum().clamp(min=1)


def normalise(advantage: Tensor, valid: Tensor) -> Tensor:
    """Zero mean and unit variance over valid rows."""
    centred = advantage - masked_mean(advantage, valid)
    deviation = masked_mean(centred.square(), valid).sqrt()
    return centred / (deviation + 1e-6)


def value_loss(value: Tensor, target: Tensor, valid: Tensor) -> Tensor:
    """Half the mean squared error over valid rows."""
    return 0.5 * masked_mean((value - target).square(), valid)


def figures(
    trajectories: Trajectories, evaluated: Evaluated, value: Tensor, target: Tensor, **losses: Tensor
) -> dict[str, Tensor]:
    """Figures that every algorithm reports. `kl` estimates KL(behaviour || current) (Schulman 2020: r - 1 - log r)."""
    valid = trajectories.valid
    ratio = evaluated.log_ratio.exp()
    residual = masked_mean((target - value - masked_mean(target - value, valid)).square(), valid)
    variance = masked_mean((target - masked_mean(target, valid)).square(), valid)
    shared = {
        "entropy": masked_mean(evaluated.entropy, valid),
        "kl": masked_mean(ratio - 1 - evaluated.log_ratio, valid),
        "explained_variance": 1 - residual / variance.clamp(min=1e-8),
    }
    return {name: figure.detach() for name, figure in (losses | shared).items()}
