"""The auxiliary loss: predict what the opponent does at the same time. The policy shares the features, nothing else."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from simul.learner.algorithms.base import Loss, Trajectories
from simul.learner.ranks import ALONE, Ranks

NONE = -1  # of `Trajectories.label`


def labelled_rows(trajectories: Trajectories) -> Tensor | None:
    """bool [T, B]: valid rows with a label; None where the game has none."""
    if trajectories.label is None:
        return None
    return (trajectories.label != NONE).any(dim=-1) & trajectories.valid


def with_opponent_loss(loss: Loss, label: Tensor, logits: Tensor, coefficient: float, ranks: Ranks = ALONE) -> Loss:
    """`loss` with `coefficient` times the mean cross-entropy over all labels of all ranks, and two more figures.

    The figures are `opponent_loss`, that mean, and `opponent_accuracy`, the share of labels that are the most probable
    class; nan where no rank has a label. All ranks call it for the same minibatch, also one that has no label.

    Args:
        label: int64 [N, K] of the labelled rows, NONE where a slot has none.
        logits: float32 [N, K, C], the network's of these rows.
    """
    count = (label != NONE).sum().to(logits.dtype)
    if ranks.count > 1:
        count = ranks.add(count[None])[0]
    known = torch.where(count > 0, 1.0, torch.nan)
    count = count.clamp(min=1)
    entropy = F.cross_entropy(logits.flatten(0, 1), label.flatten(), ignore_index=NONE, reduction="sum") / count
    with torch.no_grad():
        found = logits.gather(-1, label.clamp(min=0)[..., None]).squeeze(-1)
        right = ((found == logits.amax(dim=-1)) & (label != NONE)).sum() / count
    figures = {"opponent_loss": entropy.detach() * known, "opponent_accuracy": right * known}
    return Loss(loss.total + coefficient * entropy, loss.figures | figures, loss.log_ratio)
