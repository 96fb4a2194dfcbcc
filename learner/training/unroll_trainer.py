"""Learning from unrolls, each in one update: ppo, vtrace and reinforce."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.learner.algorithms import Settings
from simul.learner.io.learner_io import LearnerIO
from simul.learner.io.unrolls import ReceivedUnroll
from simul.learner.ranks import ALONE, RankLostError, Ranks, split_steps
from simul.learner.training.trainer import Trained
from simul.learner.training.update import Updater


class UnrollTrainer:
    """See `Trainer`. Batches are unrolls of at least `batch_steps` steps, none older than `max_policy_lag`.

    Of several ranks each takes as equal a part of them as what it has received allows. What it offers is steps.
    """

    waits_for_data = False  # unrolls that arrive and are not learned from are stale

    def __init__(
        self, updater: Updater, io: LearnerIO, batch_steps: int, max_policy_lag: int, ranks: Ranks = ALONE
    ) -> None:
        self._ranks = ranks
        self.updater = updater
        self._io = io
        self._batch_steps = batch_steps
        self._max_policy_lag = max_policy_lag

    @property
    def waiting_steps(self) -> int:
        """See `Trainer`."""
        return self._io.unrolls.waiting_rows

    def pull(self, timeout_sec: float, version: int) -> list[ReceivedUnroll] | None:
        """See `Trainer`."""
        return self._io.unrolls.take_batch(self._batch_steps, timeout_sec, version, self._max_policy_lag) or None

    def offer(self, timeout_sec: float, version: int) -> int:
        """See `Trainer`."""
        part = -(-self._batch_steps // self._ranks.count)
        return self._io.unrolls.wait_for_steps(part, timeout_sec, version, self._max_policy_lag)

    def take(self, offers: Sequence[int]) -> list[ReceivedUnroll] | None:
        """See `Trainer`."""
        if sum(offers) < self._batch_steps:
            return None
        return self._io.unrolls.take(split_steps(offers, self._batch_steps)[self._ranks.rank])

    def train(self, batch: list[ReceivedUnroll], version: int, learning_rate: float, settings: Settings) -> Trained:
        """See `Trainer`. Unrolls without a step count as dropped (`not_finite`, `rank_lost`)."""
        if self._ranks.count > 1:  # rank 0 publishes it as soon as all have made their last step
            self._io.note_published(version + 1)
        try:
            return self._train(batch, version, learning_rate, settings)
        except RankLostError:
            if batch:
                self._io.unrolls.mark_dropped(batch, "rank_lost")
            raise

    def _train(self, batch: list[ReceivedUnroll], version: int, learning_rate: float, settings: Settings) -> Trained:
        result = self.updater.update(batch, version, learning_rate, settings)
        learned = [unroll for unroll, taught in zip(batch, result.learned) if taught]
        lag = policy_lags(learned, version)
        rewards = np.concatenate([np.zeros(0, np.float32), *(unroll.arrays["reward"] for unroll in batch)])
        trained = Trained(
            result,
            decisions=lag.size,
            all_decisions=sum(number for (number,) in self._ranks.gather_numbers([lag.size])),
            unrolls=len(learned),
            lag=lag,
            reward_mean=float(rewards.mean()) if batch else math.nan,
            largest_reward=float(np.abs(rewards).max(initial=0.0)) if batch else math.nan,
        )
        if len(learned) < len(batch):
            skipped = [unroll for unroll, taught in zip(batch, result.learned) if not taught]
            self._io.unrolls.mark_dropped(skipped, "not_finite")
        return trained

    def figures(self) -> dict[str, Any]:
        """See `Trainer`."""
        return {}

    def drain_notes(self) -> list[str]:
        """See `Trainer`."""
        return []

    def finish(self) -> None:
        """See `Trainer`. Unrolls that still wait are counted as such."""


def policy_lags(unrolls: Sequence[ReceivedUnroll], version: int) -> NDArray[np.int64]:
    """Lags of every step, without bootstrap rows, behind weights of `version`: int64 [n]."""
    if not unrolls:
        return np.zeros(0, np.int64)
    lag: NDArray[np.int64] = version - np.concatenate([unroll.arrays["policy_version"] for unroll in unrolls])
    return lag
