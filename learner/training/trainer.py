"""What the learner's loop asks of an algorithm: it owns its batch type, its loss, and where batches come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.nets.base import RecurrentNetwork
from simul.learner.algorithms import Settings
from simul.learner.training.update import UpdateResult

Batch = TypeVar("Batch")


class NetworkUpdater(Protocol):
    """Owns the optimizer; changes the network in place."""

    @property
    def network(self) -> RecurrentNetwork:
        """The network that it trains."""

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """Its moments are part of a checkpoint."""

    @property
    def skipped_in_a_row(self) -> int:
        """Minibatches without a step since the last one with a step."""

    def statistics(self) -> dict[str, Tensor]:
        """Running statistics of what was learned from, for a checkpoint."""

    def load_statistics(self, saved: Mapping[str, Tensor]) -> None:
        """Go on from `statistics()` of an earlier life. Raises WeightsError where they do not fit."""


@dataclass(frozen=True)
class Trained:
    """One update, and what it was made with.

    Attributes:
        decisions: learned from for the first time, by this rank.
        all_decisions: those of all ranks.
        unrolls: learned from; 0 where the batch is of samples.
        lag: int64 [n], policy_lag of everything that a step was made with.
        reward_mean, largest_reward: of the whole batch; outcomes where the batch is of samples.
    """

    result: UpdateResult
    decisions: int
    all_decisions: int
    unrolls: int
    lag: NDArray[np.int64]
    reward_mean: float
    largest_reward: float


class Trainer(Protocol[Batch]):
    """An algorithm as the learner's loop sees it:

    if (batch := trainer.pull(timeout_sec, version)) is not None:
        trained = trainer.train(batch, version, learning_rate, settings)

    and with several ranks, where all must know what each has before one takes it:

    offers = all ranks' trainer.offer(timeout_sec, version)
    if (batch := trainer.take(offers)) is not None: ...
    """

    @property
    def updater(self) -> NetworkUpdater:
        """What makes the steps."""

    @property
    def waits_for_data(self) -> bool:
        """True where no update can be due before more has arrived, so that a version that stays is no fault."""

    @property
    def waiting_steps(self) -> int:
        """Steps, or samples, that have arrived and that no update was made with yet."""

    def pull(self, timeout_sec: float, version: int) -> Batch | None:
        """The next batch; None after `timeout_sec`. `version`: of the weights that it will update."""

    def offer(self, timeout_sec: float, version: int) -> int:
        """What this rank has to learn from; waits until it is its part of a batch, or for `timeout_sec`."""

    def take(self, offers: Sequence[int]) -> Batch | None:
        """This rank's part of the next batch, which may be empty; None, on every rank, where there is none yet."""

    def train(self, batch: Batch, version: int, learning_rate: float, settings: Settings) -> Trained:
        """One update."""

    def figures(self) -> dict[str, Any]:
        """Figures of the replay buffer; {} without one."""

    def drain_notes(self) -> list[str]:
        """Sentences for the view since the last call."""

    def finish(self) -> None:
        """The last message was received: store what must survive."""
