"""What every algorithm takes and gives. T = unroll length, B = unrolls, A = actions, K = labels of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from simul.learner.ranks import ALONE, Ranks

LOG_RATIO_LIMIT = 20.0  # e^20: no finite loss becomes infinite by one stray action


@dataclass(frozen=True)
class Trajectories:
    """Recorded facts of B unrolls; anything where `valid` is False is padding and must not matter.

    Attributes:
        mask: bool [T, B, A], True = legal.
        action: int64 [T, B]. reward: float32 [T, B], earned by the action of the same row.
        behaviour_log_prob: float32 [T, B], recorded when the action was sampled.
        discount: float32 [T, B]; 0 at the last step of an episode that terminated.
        valid: bool [T, B], rows to learn from; one run in each column, behind those of burn-in. The bootstrap row is
            not one.
        label: int64 [T, B, K], what the opponent did at the same time, -1 = not known; None: the game has no labels.
    """

    mask: Tensor
    action: Tensor
    reward: Tensor
    behaviour_log_prob: Tensor
    discount: Tensor
    valid: Tensor
    label: Tensor | None = None


@dataclass(frozen=True)
class Settings:
    """Plain numbers of an algorithm; LearnerConfig explains each."""

    gae_lambda: float = 0.95
    clip: float = 0.2
    rho_clip: float = 1.0
    c_clip: float = 1.0
    value_coefficient: float = 0.5
    entropy_coefficient: float = 0.01
    opponent_coefficient: float = 0.0
    ending_coefficient: float = 0.0


@dataclass(frozen=True)
class Loss:
    """`total` to differentiate; figures to report and log(current / behaviour) float32 [T, B], both detached.

    Of several ranks each has its part of `total` and of the figures: they add up over the ranks.
    """

    total: Tensor
    figures: dict[str, Tensor]
    log_ratio: Tensor


# (trajectories, logits float32 [T, B, A], value float32 [T + 1, B], settings, ranks) -> Loss.
# value[t]: of row t; the row after each column's last valid one holds its bootstrap value.
# T is 0 on a rank that has nothing of this minibatch.
Algorithm = Callable[[Trajectories, Tensor, Tensor, Settings, Ranks], Loss]


@dataclass(frozen=True)
class ActionEvaluation:
    """The current policy's figures of the recorded actions.

    Attributes:
        log_prob: float32 [T, B] of the recorded action.
        log_ratio: float32 [T, B], log(current / behaviour), 0 where padded.
        entropy: float32 [T, B], over legal actions.
    """

    log_prob: Tensor
    log_ratio: Tensor
    entropy: Tensor


def evaluate_actions(trajectories: Trajectories, logits: Tensor) -> ActionEvaluation:
    """Log-softmax over legal actions only. `logits`: float32 [T, B, A], unmasked."""
    legal = trajectories.mask | ~trajectories.valid[..., None]  # padded rows: all legal, so that nothing is infinite
    log_probs = torch.log_softmax(logits.masked_fill(~legal, -torch.inf), dim=-1)  # (T, B, A)
    finite = log_probs.masked_fill(~legal, 0.0)
    log_prob = finite.gather(-1, trajectories.action[..., None]).squeeze(-1)
    log_ratio = torch.where(trajectories.valid, log_prob - trajectories.behaviour_log_prob, 0.0)
    log_ratio = log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    entropy = -(finite * log_probs.exp()).sum(-1)
    return ActionEvaluation(log_prob, log_ratio, entropy)


class ValidRows:
    """Means over the valid rows of a minibatch, of all ranks.

    Attributes:
        share: this rank's part of all valid rows, float32 scalar; 1 for a learner alone.
    """

    def __init__(self, valid: Tensor, ranks: Ranks = ALONE) -> None:
        """`valid`: bool [T, B]. With several ranks `moments` must be called first, once: it counts the rows of all."""
        self._valid = valid
        self._ranks = ranks
        self._count = valid.sum().clamp(min=1)
        self.share = torch.ones((), device=valid.device)

    def moments(self, *xs: Tensor) -> list[tuple[Tensor, Tensor]]:
        """(mean, variance) of each float32 [T, B], over all ranks, without gradient."""
        xs = tuple(x.detach() for x in xs)
        if self._ranks.count == 1:
            means = [self.part(x) for x in xs]
            return [(mean, self.part((x - mean).square())) for x, mean in zip(xs, means)]
        own = self._valid.sum()
        wide = torch.float32 if self._valid.device.type == "mps" else torch.float64
        kept = [torch.where(self._valid, x, 0.0).to(wide) for x in xs]
        sums = torch.stack([own.to(wide), *(x.sum() for x in kept), *(x.square().sum() for x in kept)])
        count, *sums_of_all = self._ranks.add(sums).unbind()
        self._count = count.clamp(min=1).to(own.dtype)
        self.share = (own / self._count).to(xs[0].dtype)
        found = []
        for x, total, squares in zip(xs, sums_of_all[: len(xs)], sums_of_all[len(xs) :]):
            mean = total / self._count
            variance = (squares / self._count - mean.square()).clamp(min=0.0)
            found.append((mean.to(x.dtype), variance.to(x.dtype)))
        return found

    def part(self, x: Tensor) -> Tensor:
        """This rank's part of the mean of float32 [T, B]: the sum of its rows over the count of all; the mean alone."""
        return torch.where(self._valid, x, 0.0).sum() / self._count


def normalise(x: Tensor, moments: tuple[Tensor, Tensor]) -> Tensor:
    """`x` at mean 0 and variance 1."""
    mean, variance = moments
    return (x - mean) / (variance.sqrt() + 1e-6)


def value_loss(value: Tensor, target: Tensor, rows: ValidRows) -> Tensor:
    """Half the mean squared error over valid rows."""
    return 0.5 * rows.part((value - target).square())


def figures(
    rows: ValidRows,
    evaluated: ActionEvaluation,
    residual: tuple[Tensor, Tensor],
    target: tuple[Tensor, Tensor],
    **losses: Tensor,
) -> dict[str, Tensor]:
    """Figures that every algorithm reports. `kl` estimates KL(behaviour || current) (Schulman 2020: r - 1 - log r).

    `residual`, `target`: moments of target - value, and of the target.
    """
    ratio = evaluated.log_ratio.exp()
    shared = {
        "entropy": rows.part(evaluated.entropy),
        "kl": rows.part(ratio - 1 - evaluated.log_ratio),
        "explained_variance": rows.share * (1 - residual[1] / target[1].clamp(min=1e-8)),
    }
    return {name: figure.detach() for name, figure in (losses | shared).items()}
