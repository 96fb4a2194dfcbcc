"""The main loop of a learner of several ranks: all make the same updates, and agree on each before they begin it."""

from __future__ import annotations

import contextlib
import time
import zlib
from typing import Any

from simul.common.errors import DivergedError, NothingLearnedError
from simul.common.nets.io import bytes_to_state, weights_to_bytes
from simul.learner.checkpoints.optimizer_state import load_moments, optimizer_to_bytes
from simul.learner.learner import PULL_SEC, Learner, LearnerParts, TrainingProgress
from simul.learner.ranks import RankLostError, Ranks
from simul.learner.training.trainer import NetworkUpdater

COMPARE_EVERY = 100  # updates, after which the weights of all ranks are compared
TICK_SEC = 0.02  # longest wait of a rank for its own part of a batch; then it hears what the others have


class RankedLearner(Learner):
    """Rank 0: the only one that publishes and saves weights.

    Where another rank is lost between two updates, it saves what all have learned.
    """

    def __init__(self, ranks: Ranks, parts: LearnerParts) -> None:
        super().__init__(parts)
        self._ranks = ranks
        self._offers: list[int] = []
        self._arrived_at_all = 0
        self._foreign = -1
        self._updating = False  # or an update has failed: some minibatches may be in the weights, and others not

    def run(self) -> bool:
        """See `Learner.run`. Raises RankLostError, after a last report, unless it was asked to stop."""
        try:
            return super().run()
        except RankLostError as error:
            if self._stop:
                self._report(event=str(error))
                return self._finish()
            self._save_alone(last=True)
            self._io.finish()
            self._report(state="failed", event=str(error))
            raise

    def _run(self) -> bool:
        saved = super()._run()
        with contextlib.suppress(RankLostError):  # the end of one rank ends the others, who may still save
            self._ranks.wait_for_save()
        return saved

    @property
    def _arrived(self) -> int:
        return self._arrived_at_all

    def _agree_to_go_on(self) -> bool:
        """Hear from every rank what it has to learn from, and whether it was asked to stop: one collective."""
        begin = time.monotonic()
        offer = self._trainer.offer(TICK_SEC, self.progress.version)
        served = self._io.publisher.foreign_version
        told = self._ranks.gather_numbers([offer, bool(self._stop), served, self._io.arrived])
        self._stages.lap("wait")
        self._statistics.wait_sec += time.monotonic() - begin
        self._offers, stops, foreign, arrived = (list(column) for column in zip(*told))
        self._foreign, self._arrived_at_all = foreign[0], sum(arrived)  # every server says to rank 0 what it has served
        self._note_wait()
        return not any(stops)

    def _skip_served_versions(self) -> None:
        if self._foreign >= self.progress.version:
            self.progress.version = self._foreign + 1
            self._io.note_published(self.progress.version)
            self._ranks.gather_numbers([0])  # rank 0 publishes it once all expect it
            self._announce_skipped(self._foreign)

    def _pull(self) -> Any:
        return self._trainer.take(self._offers)

    def _update(self, batch: Any) -> bool:
        self._updating = True
        learned = super()._update(batch)
        if self.progress.updates % COMPARE_EVERY == 0:
            found = zlib.crc32(weights_to_bytes(self._trainer.updater.network))
            if len({number for (number,) in self._ranks.gather_numbers([found])}) > 1:
                raise RankLostError("The ranks of the learner have different weights: all start from the checkpoint.")
        self._updating = False
        return learned

    def _save(self, last: bool = False) -> bool:
        saved = self._save_alone(last)
        if not last:
            self._ranks.wait_for_save()
        return saved

    def _save_alone(self, last: bool) -> bool:
        """As `Learner._save`, without the other ranks. False also where the weights are no version to save."""
        if not self._updating:
            return super()._save(last)
        if sentence := self._checkpoints.describe_lost(self.progress.decisions):
            self._report(event=sentence)
        return not sentence


class RankFollower(RankedLearner):
    """Any other rank: it learns from what it receives, and reports its part of the books."""

    def _run(self) -> bool:
        """What ends the run ends this process when rank 0 has reported it."""
        try:
            return super()._run()
        except DivergedError as error:
            raise RankLostError(str(error)) from error
        except NothingLearnedError:  # rank 0 saves before it ends the run
            self._io.finish()
            self._report(state="stopped")
            while not self._stop:
                time.sleep(PULL_SEC)
            return True

    def _publish(self) -> None:
        self._check_finite()

    def _save_alone(self, last: bool) -> bool:
        return True

    def _announce_skipped(self, foreign: int) -> None:
        pass

    def _finish_store(self) -> None:
        pass

    def _alarms(self, now: float) -> list[str]:
        return []

    def _metrics(self, now: float) -> dict[str, Any]:
        """What adds up over the ranks; all else rank 0 reports."""
        figures = super()._metrics(now)
        return {name: figures[name] for name in OF_EACH_RANK}


# Of the figures of `Learner`: those that every rank reports.
OF_EACH_RANK = (
    "decisions_learned_since_start", "decisions_per_sec", "stage_sec", "loop_sec", "policy_lag", "unrolls", "samples",
    "steps_waiting", "steps_dropped", "untrusted", "signalled",
)  # fmt: skip


def share_start(updater: NetworkUpdater, progress: TrainingProgress, ranks: Ranks) -> TrainingProgress:
    """Rank 0's weights, optimizer and statistics to all ranks, in place; returns its progress."""
    ranks.wait_for_first()
    network = updater.network
    first = ranks.rank == 0
    weights = ranks.broadcast_bytes(weights_to_bytes(network) if first else b"")
    saved = optimizer_to_bytes(network, updater.optimizer, updater.statistics()) if first else b""
    optimizer = ranks.broadcast_bytes(saved)
    if not first:
        network.load_state_dict(bytes_to_state(weights))
        updater.load_statistics(load_moments(bytes_to_state(optimizer), network, updater.optimizer))
    numbers = [progress.version, progress.decisions, progress.updates, progress.horizon]
    return TrainingProgress(*ranks.gather_numbers(numbers)[0])
