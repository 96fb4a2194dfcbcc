"""Learning from a replay buffer of searched positions: alphazero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from simul.common.nets.base import RecurrentNetwork
from simul.common.runtime.metrics import Stages
from simul.learner.algorithms import Settings
from simul.learner.algorithms.alphazero import ListedPositions, Prediction, alphazero_loss, list_positions
from simul.learner.io.receive_queues import SampleQueue
from simul.learner.ranks import ALONE, Ranks
from simul.learner.replay.experience_replay import ExperienceReplay
from simul.learner.replay.schedule import UseSchedule
from simul.learner.training.optimizers import AdamW
from simul.learner.training.trainer import Trained
from simul.learner.training.update import STAGES, OptimizerStep, UpdateResult, mean_figures


class SampleTrainer:
    """See `Trainer`. A batch is the numbers of drawn samples; they are read from the buffer minibatch by minibatch.

    Nothing is taken from the queue while an update is due, so that a learner that is too slow holds up the
    workers instead of using samples less often. Of several ranks the first one has the replay buffer, see
    `DealtSampleTrainer`. What it offers is whether an update is due.
    """

    def __init__(
        self,
        updater: SampleUpdater,
        samples: SampleQueue,
        replay: ExperienceReplay,
        schedule: UseSchedule,
        stages: Stages | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        """`stages`: those of the learner's loop."""
        self._ranks = ranks
        self._stages = stages or Stages(STAGES)
        self.updater = updater
        self._samples = samples
        self._replay = replay
        self._schedule = schedule
        self._new = 0  # samples stored since the last update

    @property
    def waits_for_data(self) -> bool:
        """See `Trainer`."""
        return not self._schedule.due(self._replay.held)

    @property
    def waiting_steps(self) -> int:
        """See `Trainer`."""
        return self._samples.waiting_rows + self._new

    def pull(self, timeout_sec: float, version: int) -> NDArray[np.int64] | None:
        """See `Trainer`."""
        return self.take([self.offer(timeout_sec, version)])

    def offer(self, timeout_sec: float, version: int) -> int:
        """See `Trainer`."""
        if self.waits_for_data:
            self._store(timeout_sec)
        return int(not self.waits_for_data)

    def take(self, offers: Sequence[int]) -> NDArray[np.int64] | None:
        """See `Trainer`."""
        if not offers[0]:
            return None
        self._schedule.count_drawn()
        drawn = self._replay.draw(self._schedule.batch_rows)
        self._stages.lap("batch")
        return drawn

    def train(self, batch: NDArray[np.int64], version: int, learning_rate: float, settings: Settings) -> Trained:
        """See `Trainer`. The age of a sample in versions is its policy_lag."""
        self._ranks.gather_numbers([min(self.updater.minibatches, len(batch))])  # the others make as many
        parts = np.array_split(np.arange(len(batch)), min(self.updater.minibatches, len(batch)))
        dealt = (self._ranks.deal_arrays(self._parts(self._replay.get(batch[part]))) for part in parts)
        result, versions, outcome = self.updater.update(dealt, learning_rate, settings)
        new = self._new if result.steps else 0
        self._new -= new
        return Trained(
            result,
            decisions=new,
            all_decisions=self._ranks.gather_numbers([new])[0][0],
            unrolls=0,
            lag=version - versions[result.learned],
            reward_mean=float(outcome.mean()),
            largest_reward=float(np.abs(outcome).max()),
        )

    def _parts(self, columns: Mapping[str, NDArray[Any]]) -> list[Mapping[str, NDArray[Any]]]:
        """The columns of a minibatch, divided among the ranks."""
        if self._ranks.count == 1:
            return [columns]
        return split_columns(columns, self._ranks.count)

    def figures(self) -> dict[str, Any]:
        """See `Trainer`."""
        return {**self._replay.figures(), "uses": self._schedule.uses}

    def drain_notes(self) -> list[str]:
        """Sentences since the last call."""
        notes, self._replay.notes = self._replay.notes, []
        return notes

    def finish(self) -> None:
        """See `Trainer`."""
        self._store(timeout_sec=0.0)
        self._replay.close()

    def _store(self, timeout_sec: float) -> None:
        """Store what waits in the queue; waits for the first of it."""
        received = self._samples.take_all(timeout_sec)
        self._stages.lap("wait")
        for samples in received:
            if self._replay.add(samples):
                self._new += samples.length
                self._schedule.count_arrived(samples.length)
            else:
                self._samples.mark_dropped([samples], "duplicate")
        self._stages.lap("batch")


class DealtSampleTrainer:
    """See `Trainer`: of a rank other than the first, which deals it its part of each minibatch."""

    waits_for_data = True
    waiting_steps = 0

    def __init__(self, updater: SampleUpdater, ranks: Ranks) -> None:
        self.updater = updater
        self._ranks = ranks

    def pull(self, timeout_sec: float, version: int) -> bool | None:
        """Only a learner alone pulls."""
        raise NotImplementedError

    def offer(self, timeout_sec: float, version: int) -> int:
        """See `Trainer`. What waits is at the first rank."""
        return 0

    def take(self, offers: Sequence[int]) -> bool | None:
        """See `Trainer`."""
        return True if offers[0] else None

    def train(self, batch: bool, version: int, learning_rate: float, settings: Settings) -> Trained:
        """See `Trainer`."""
        minibatches = self._ranks.gather_numbers([0])[0][0]
        dealt = (self._ranks.deal_arrays(()) for _ in range(minibatches))
        result, versions, outcome = self.updater.update(dealt, learning_rate, settings)
        return Trained(
            result,
            decisions=0,
            all_decisions=self._ranks.gather_numbers([0])[0][0],
            unrolls=0,
            lag=version - versions[result.learned],
            reward_mean=float(outcome.mean()) if len(outcome) else math.nan,
            largest_reward=float(np.abs(outcome).max(initial=0.0)),
        )

    def figures(self) -> dict[str, Any]:
        """See `Trainer`."""
        return {}

    def drain_notes(self) -> list[str]:
        """See `Trainer`."""
        return []

    def finish(self) -> None:
        """See `Trainer`."""


def split_columns(columns: Mapping[str, NDArray[Any]], count: int) -> list[Mapping[str, NDArray[Any]]]:
    """Samples by columns, see `messages.Samples`, in `count` parts of about as many rows."""
    rows = np.array_split(np.arange(len(columns["outcome"])), count)
    ends = np.concatenate([[0], np.cumsum(columns["target_count"])])  # of the targets' entries, by row
    parts: list[Mapping[str, NDArray[Any]]] = []
    for part in rows:
        first, last = (part[0], part[-1] + 1) if len(part) else (0, 0)
        of_targets = slice(ends[first], ends[last])
        parts.append({
            name: column[of_targets] if name in ("target_action", "target_probability") else column[first:last]
            for name, column in columns.items()
        })  # fmt: skip
    return parts


class SampleUpdater:
    """One step a minibatch of drawn samples. The network has no memory. See `NetworkUpdater`."""

    def __init__(
        self,
        network: RecurrentNetwork,
        *,
        num_actions: int,
        minibatches: int,
        max_gradient_norm: float,
        weight_decay: float,
        precision: torch.dtype = torch.float32,
        stages: Stages | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        """`stages`: those of the learner's loop."""
        self._ranks = ranks
        self._stages = stages or Stages(STAGES)
        self.network = network
        self.device = next(network.parameters()).device
        fused = self.device.type in ("cpu", "cuda")
        self.optimizer = AdamW(network.parameters(), eps=1e-5, weight_decay=weight_decay, fused=fused)
        self._optimizer_step = OptimizerStep(network, self.optimizer, max_gradient_norm, ranks)
        self._num_actions = num_actions
        self.minibatches = minibatches
        self._precision = precision

    @property
    def skipped_in_a_row(self) -> int:
        """See `NetworkUpdater`."""
        return self._optimizer_step.skipped_in_a_row

    def update(
        self, minibatches: Iterable[Mapping[str, NDArray[Any]]], learning_rate: float, settings: Settings
    ) -> tuple[UpdateResult, NDArray[np.int64], NDArray[np.float32]]:
        """Learn from this rank's part of each minibatch, columns as `messages.Samples` declares them.

        `learned` is of its samples, in order. Also their versions and outcomes.
        """
        self._optimizer_step.set_learning_rate(learning_rate)
        shown: list[dict[str, float]] = []
        learned, versions, outcomes = [np.zeros(0, np.bool_)], [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
        skipped, cause = 0, ""
        for columns in minibatches:
            versions.append(columns["policy_version"])
            outcomes.append(columns["outcome"])
            listed = list_positions(columns, self._num_actions, self.device)
            self._stages.lap("batch")
            predicted = self._predict(listed, ending=settings.ending_coefficient > 0)
            loss = alphazero_loss(listed.positions, predicted, settings, self._ranks)
            figures = self._optimizer_step.step(loss)
            self._stages.lap("update")
            learned.append(np.full(len(outcomes[-1]), figures is not None))
            if figures is None:
                largest = float(np.abs(outcomes[-1]).max(initial=0.0))
                skipped, cause = skipped + 1, self._optimizer_step.describe_gradient(loss, largest)
                continue
            shown.append(figures)
        nothing = np.zeros(0, np.float32)
        result = UpdateResult(mean_figures(shown), nothing, np.concatenate(learned), len(shown), skipped, cause)
        return result, np.concatenate(versions), np.concatenate(outcomes)

    def statistics(self) -> dict[str, torch.Tensor]:
        """See `NetworkUpdater`: there are none."""
        return {}

    def load_statistics(self, saved: object) -> None:
        """See `NetworkUpdater`."""

    def _predict(self, listed: ListedPositions, ending: bool) -> Prediction:
        """Of the legal actions, M; the ending only where it is wanted and the network predicts it."""
        observation = listed.positions.observation
        lowered = self._precision != torch.float32
        with torch.autocast(self.device.type, dtype=self._precision, enabled=lowered):
            shown = observation, listed.mask, self.network.initial_state(len(observation)), listed.actions
            if ending and self.network.predicts_ending:
                logits, value, *parts = self.network.forward_predicting(*shown)
            else:
                logits, value, *parts = self.network.forward_listed(*shown)
        return Prediction(logits.float(), value.float(), tuple(part.float() for part in parts))
