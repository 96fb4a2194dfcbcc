"""Learning from a replay buffer of searched positions: alphazero."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from simul.common.nets.base import RecurrentNetwork
from simul.common.runtime.metrics import Stages
from simul.learner.algorithms import Settings
from simul.learner.algorithms.alphazero import ListedPositions, alphazero_loss, list_positions
from simul.learner.replay.replay import Replay
from simul.learner.replay.schedule import UseSchedule
from simul.learner.trainer import Trained
from simul.learner.unroll_receiver import UnrollReceiver
from simul.learner.update import STAGES, OptimizerStep, UpdateResult, mean_figures


class SampleTrainer:
    """See `Trainer`. A batch is the numbers of drawn samples; they are read from the buffer minibatch by minibatch.

    Nothing is taken from the receiver while an update is due, so that a learner that is too slow holds up the
    workers instead of using samples less often.
    """

    def __init__(
        self,
        updater: SampleUpdater,
        receiver: UnrollReceiver,
        replay: Replay,
        schedule: UseSchedule,
        batch_rows: int,
        stages: Stages | None = None,
    ) -> None:
        """`stages`: those of the learner's loop."""
        self._stages = stages or Stages(STAGES)
        self.updater = updater
        self._receiver = receiver
        self._replay = replay
        self._schedule = schedule
        self._batch_rows = batch_rows
        self._new = 0  # samples stored since the last update

    @property
    def waits_for_data(self) -> bool:
        """See `Trainer`."""
        return not self._schedule.due(self._replay.held)

    @property
    def waiting_steps(self) -> int:
        """See `Trainer`."""
        return self._receiver.waiting_samples + self._new

    def pull(self, timeout_sec: float, version: int) -> NDArray[np.int64] | None:
        """See `Trainer`."""
        if self.waits_for_data:
            self._store(timeout_sec)
        if self.waits_for_data:
            return None
        self._schedule.count_drawn(self._batch_rows)
        drawn = self._replay.draw(self._batch_rows)
        self._stages.lap("batch")
        return drawn

    def train(self, batch: NDArray[np.int64], version: int, learning_rate: float, settings: Settings) -> Trained:
        """See `Trainer`. The age of a sample in versions is its policy_lag."""
        result, versions, outcome = self.updater.update(self._replay, batch, learning_rate, settings)
        new = self._new if result.learned.any() else 0
        self._new -= new
        return Trained(
            result,
            decisions=new,
            unrolls=0,
            lag=version - versions[result.learned],
            reward_mean=float(outcome.mean()),
            largest_reward=float(np.abs(outcome).max()),
        )

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
        """Store what the receiver holds; waits for the first of it."""
        received = self._receiver.take_samples(timeout_sec)
        self._stages.lap("wait")
        for samples in received:
            if self._replay.add(samples):
                self._new += samples.length
                self._schedule.count_arrived(samples.length)
            else:
                self._receiver.mark_duplicate(samples)
        self._stages.lap("batch")


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
    ) -> None:
        """`stages`: those of the learner's loop."""
        self._stages = stages or Stages(STAGES)
        self.network = network
        self.device = next(network.parameters()).device
        fused = self.device.type in ("cpu", "cuda")
        self.optimizer = torch.optim.AdamW(network.parameters(), eps=1e-5, weight_decay=weight_decay, fused=fused)
        self._optimizer_step = OptimizerStep(network, self.optimizer, max_gradient_norm)
        self._num_actions = num_actions
        self._minibatches = minibatches
        self._precision = precision

    @property
    def skipped_in_a_row(self) -> int:
        """See `NetworkUpdater`."""
        return self._optimizer_step.skipped_in_a_row

    def update(
        self, replay: Replay, numbers: NDArray[np.int64], learning_rate: float, settings: Settings
    ) -> tuple[UpdateResult, NDArray[np.int64], NDArray[np.float32]]:
        """Learn from drawn samples, each once a draw; `learned` is of the draws. Also their versions and outcomes."""
        self._optimizer_step.set_learning_rate(learning_rate)
        shown: list[dict[str, float]] = []
        learned = np.zeros(len(numbers), np.bool_)
        versions, outcomes = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.float32)
        skipped, cause = 0, ""
        for part in np.array_split(np.arange(len(numbers)), min(self._minibatches, len(numbers))):
            columns = replay.get(numbers[part])
            versions[part], outcomes[part] = columns["policy_version"], columns["outcome"]
            listed = list_positions(columns, self._num_actions, self.device)
            self._stages.lap("batch")
            loss = alphazero_loss(listed.positions, *self._forward(listed), settings)
            figures = self._optimizer_step.step(loss)
            self._stages.lap("update")
            if figures is None:
                largest = float(np.abs(outcomes[part]).max())
                skipped, cause = skipped + 1, self._optimizer_step.describe_gradient(loss, largest)
                continue
            learned[part] = True
            shown.append(figures)
        result = UpdateResult(mean_figures(shown), np.zeros(0, np.float32), learned, skipped, cause)
        return result, versions, outcomes

    def statistics(self) -> dict[str, torch.Tensor]:
        """See `NetworkUpdater`: there are none."""
        return {}

    def load_statistics(self, saved: object) -> None:
        """See `NetworkUpdater`."""

    def _forward(self, listed: ListedPositions) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of the legal actions float32 [B, M], and value float32 [B]."""
        observation = listed.positions.observation
        lowered = self._precision != torch.float32
        with torch.autocast(self.device.type, dtype=self._precision, enabled=lowered):
            state = self.network.initial_state(len(observation))
            logits, value = self.network.forward_listed(observation, listed.mask, state, listed.actions)
        return logits.float(), value.float()
