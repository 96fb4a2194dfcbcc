"""AlphaZero's loss (Silver et al. 2018, doi:10.1126/science.aar6404, eq. 1): the search's policy, the game's outcome.

Its batch is positions, drawn one by one from the replay buffer; no trajectories. B positions, A actions, E bytes of an
ending, K entries of all policy targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from simul.common.protocol.masks import list_legal, unpack_masks
from simul.learner.algorithms.base import Loss, Settings, ValidRows
from simul.learner.ranks import ALONE, Ranks


@dataclass(frozen=True)
class Positions:
    """Drawn positions with their targets.

    Attributes:
        observation: wire dtype [B, D]. mask: bool [B, A], True = legal.
        target_row, target_action: int64 [K], the position and the action of an entry of a policy target.
        target_probability: float32 [K].
        has_target: bool [B]; False: only the value is learned from this position.
        outcome: float32 [B], from -1 to 1.
        ending: float32 [B, E], from 0 to 1, what the game's end tells of the position; E is 0 where the game has none.
    """

    observation: Tensor
    mask: Tensor
    target_row: Tensor
    target_action: Tensor
    target_probability: Tensor
    has_target: Tensor
    outcome: Tensor
    ending: Tensor


def make_positions(columns: Mapping[str, NDArray[Any]], num_actions: int, device: torch.device) -> Positions:
    """Positions on `device` from columns as `messages.Samples` declares them."""
    count = columns["target_count"]
    ending = columns["ending"] if "ending" in columns else np.zeros((len(count), 0), np.uint8)
    arrays = {
        "observation": columns["observation"],
        "mask": unpack_masks(columns["mask"], num_actions).view(np.bool_),
        "target_row": np.repeat(np.arange(len(count)), count),
        "target_action": columns["target_action"].astype(np.int64),
        "target_probability": columns["target_probability"],
        "has_target": count > 0,
        "outcome": columns["outcome"],
        "ending": ending.astype(np.float32) / 255,
    }
    return Positions(**{name: torch.from_numpy(array).to(device) for name, array in arrays.items()})


@dataclass(frozen=True)
class ListedPositions:
    """Positions whose logits are of legal actions alone, M at most: of thousands of actions a few dozen are legal.

    Attributes:
        positions: as for `alphazero_loss`, with A = M: column m of a row is its action `actions[row, m]`.
        actions: int64 [B, M], legal ones in order, then action 0, where `positions.mask` is False.
        mask: bool [B, A], as the network is shown it.
    """

    positions: Positions
    actions: Tensor
    mask: Tensor


def list_positions(columns: Mapping[str, NDArray[Any]], num_actions: int, device: torch.device) -> ListedPositions:
    """As `make_positions`, for the legal actions alone. Every target action must be legal."""
    whole = make_positions(columns, num_actions, torch.device("cpu"))
    mask = whole.mask.numpy()
    actions, counts = list_legal(mask)
    row = whole.target_row.numpy()
    first = np.cumsum(counts) - counts
    place = np.searchsorted(np.flatnonzero(mask), row * num_actions + whole.target_action.numpy()) - first[row]
    used = np.arange(actions.shape[1]) < counts[:, None]
    listed = replace(whole, mask=torch.from_numpy(used), target_action=torch.from_numpy(place))
    moved = {field.name: getattr(listed, field.name).to(device) for field in fields(listed)}
    return ListedPositions(Positions(**moved), torch.from_numpy(actions).to(device), whole.mask.to(device))


@dataclass(frozen=True)
class Prediction:
    """What the network says of B positions.

    Attributes:
        logits: float32 [B, A], unmasked. value: float32 [B].
        ending: float32 [B, E] in parts, of planes and of numbers: log-odds; none: it does not predict it.
    """

    logits: Tensor
    value: Tensor
    ending: tuple[Tensor, ...] = ()


def alphazero_loss(positions: Positions, predicted: Prediction, settings: Settings, ranks: Ranks = ALONE) -> Loss:
    """Cross-entropy against the target over legal actions, plus `value_coefficient` times half the squared error.

    The cross-entropy is a mean over the positions that have a target, the squared error over all. `kl` is
    KL(target || policy), the cross-entropy without the target's own entropy. Where an ending is predicted,
    `ending_coefficient` times `ending_loss` is added: the mean binary cross-entropy of each of its parts, added up.

    Args:
        positions: B, A, E, K as in `Positions`.
        settings: `value_coefficient`, `ending_coefficient`.
    """
    logits, value = predicted.logits, predicted.value
    log_probs = torch.log_softmax(logits.masked_fill(~positions.mask, -torch.inf), dim=-1)  # (B, A)
    finite = log_probs.masked_fill(~positions.mask, 0.0)
    probability = positions.target_probability
    chosen = finite[positions.target_row, positions.target_action]  # (K,)
    error = value - positions.outcome
    rows = ValidRows(torch.ones_like(positions.has_target), ranks)
    of_error, of_outcome = rows.moments(error, positions.outcome)
    targets = ranks.add(positions.has_target.sum()).clamp(min=1)
    policy = -(probability * chosen).sum() / targets
    values = 0.5 * rows.part(error.square())
    total = policy + settings.value_coefficient * values
    sizes = [part.shape[1] for part in predicted.ending]
    of_ending = [
        rows.part(F.binary_cross_entropy_with_logits(part, target, reduction="none").mean(dim=1))
        for part, target in zip(predicted.ending, positions.ending.split(sizes, dim=1) if sizes else ())
    ]
    if of_ending:
        total = total + settings.ending_coefficient * sum(of_ending)
    target_entropy = -torch.special.xlogy(probability, probability).sum() / targets
    shown = {
        "policy_loss": policy,
        "value_loss": values,
        "entropy": rows.part(-(finite * log_probs.exp()).sum(-1)),
        "kl": policy - target_entropy,
        **({"ending_loss": torch.stack(of_ending).sum()} if of_ending else {}),
        "explained_variance": rows.share * (1 - of_error[1] / of_outcome[1].clamp(min=1e-8)),
    }
    figures = {name: figure.detach() for name, figure in shown.items()}
    return Loss(total, figures, log_ratio=torch.zeros(0, device=value.device))
