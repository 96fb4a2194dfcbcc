"""Two ranks of a learner in two threads: one that writes for long, one that is lost, before a stop and after."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import create_autospec

import numpy as np
import pytest
import torch
from torch import nn

from simul.common.checkpoints.meta import CheckpointMeta
from simul.common.config.schema import NetworkConfig
from simul.common.protocol.specs import GameSpec
from simul.common.role.lifecycle import StopFlag
from simul.learner.algorithms import Settings
from simul.learner.checkpoints.checkpoint_schedule import CheckpointSchedule
from simul.learner.checkpoints.checkpoint_store import CheckpointStore, RunFacts
from simul.learner.checkpoints.last_version import LastVersionFile
from simul.learner.checkpoints.league import League
from simul.learner.io.learner_io import LearnerIO
from simul.learner.learner import Learner, LearnerParts, LearningSchedule, TrainingProgress
from simul.learner.ranked_learner import RankedLearner, RankFollower
from simul.learner.ranks import RankLostError
from simul.learner.training.trainer import Trained
from simul.learner.training.update import UpdateResult

SPEC = GameSpec("numbers", 3, 4)
COLLECTIVE_SEC = 1.0  # see `distributed_ranks.TIMEOUT_SEC`
PATIENCE_SEC = 60.0
STEPS = 8  # of an update


class ThreadGroup:
    """What the ranks of two threads have in common."""

    def __init__(self) -> None:
        self.meeting = threading.Barrier(2)
        self.saved = threading.Semaphore(0)
        self.numbers: list[list[int]] = [[], []]

    def meet(self) -> None:
        try:
            self.meeting.wait(COLLECTIVE_SEC)
        except threading.BrokenBarrierError as error:
            raise RankLostError("A rank is gone or silent.") from error

    def leave(self) -> None:
        self.meeting.abort()
        self.saved.release()


@dataclass
class ThreadRanks:
    """See `Ranks`: of them what the loop itself calls."""

    rank: int
    group: ThreadGroup
    count: int = 2

    def wait_for_save(self) -> None:
        if self.rank == 0:
            self.group.saved.release()
        elif not self.group.saved.acquire(timeout=PATIENCE_SEC):
            raise RankLostError("silent")

    def gather_numbers(self, numbers: Sequence[int]) -> list[list[int]]:
        self.group.numbers[self.rank] = list(numbers)
        self.group.meet()
        found = [list(each) for each in self.group.numbers]
        self.group.meet()
        return found


class Trainer:
    """Each update adds 1 to the weights. `turn` is called with the number of updates at the begin of each turn."""

    waits_for_data, waiting_steps = False, 0

    def __init__(self, ranks: ThreadRanks, turn: Callable[[int], None], lost_in: int) -> None:
        """`lost_in`: the update, from 1, in which another rank is gone; 0: none. Then it calls `in_update`."""
        self.in_update: Callable[[], None] = lambda: None
        self._ranks, self._turn, self._lost_in = ranks, turn, lost_in
        network = nn.Linear(2, 2)
        nn.init.zeros_(network.weight)
        optimizer = torch.optim.AdamW(network.parameters())
        self.updater = SimpleNamespace(network=network, optimizer=optimizer, skipped_in_a_row=0, statistics=dict)
        self._updates = 0
        self.finished = False

    def offer(self, timeout_sec: float, version: int) -> int:
        self._turn(self._updates)
        return 1

    def take(self, offers: Sequence[int]) -> object:
        return offers

    def train(self, batch: object, version: int, learning_rate: float, settings: Settings) -> Trained:
        self._ranks.group.meet()
        self._updates += 1
        with torch.no_grad():
            self.updater.network.weight += 1
        if self._updates == self._lost_in:
            self.in_update()
            self._ranks.group.leave()
            raise RankLostError("A rank is gone in the update.")
        result = UpdateResult({}, np.zeros(0, np.float32), np.ones(1, bool), steps=1, skipped=0)
        return Trained(result, STEPS, 2 * STEPS, 1, np.zeros(0, np.int64), 0.0, 1.0)

    def figures(self) -> dict[str, Any]:
        return {}

    def drain_notes(self) -> list[str]:
        return []

    def finish(self) -> None:
        self.finished = True


def make_io() -> Any:
    """See `LearnerIO`: nothing arrives."""
    io = create_autospec(LearnerIO, instance=True, what="unrolls", arrived=0, version_lag=0, met_server=True)
    io.unrolls = io.samples = SimpleNamespace(account=dict, counts=SimpleNamespace(dropped_rows=0))
    io.publisher = SimpleNamespace(foreign_version=-1)
    io.drain_events.return_value = []
    return io


class Reporter:
    def __init__(self) -> None:
        self.events: list[str] = []
        self.states: list[str] = []
        self.saving = False

    def due(self, now: float) -> bool:
        return False

    def send(self, metrics: dict[str, Any], *, state: str | None = None, event: str = "") -> None:
        self.saving = metrics.get("saving", False)
        self.states += [state] if state else []
        self.events += [event] if event else []


class SlowStore(CheckpointStore):
    """`before`: called before each checkpoint is written."""

    before: Callable[[], None] = staticmethod(lambda: None)

    def save(self, meta: CheckpointMeta, files: Any) -> Any:
        self.before()
        return super().save(meta, files)


class Rank:
    """`outcome`: what its `run` returned or raised."""

    def __init__(
        self, rank: int, group: ThreadGroup, folder: Path, turn: Callable[[Rank, int], None], lost_in: int
    ) -> None:
        self.ranks, self.stop, self.reporter = ThreadRanks(rank, group), StopFlag(), Reporter()
        self.store = SlowStore(folder / "checkpoints")
        self.trainer = Trainer(self.ranks, lambda updates: turn(self, updates), lost_in)
        facts = RunFacts(SPEC, NetworkConfig("mlp_lstm", {}), "0" * 16, 0)
        league = League(folder / "past", every_decisions=10**9, resident=0)
        self.checkpoints = CheckpointSchedule(
            self.store, league, facts, begin=time.monotonic(), every_sec=10**6, milestone_every_decisions=4 * STEPS
        )
        schedule = LearningSchedule(3, 20, lambda decisions: 0.1, lambda decisions: Settings())
        published = LastVersionFile(folder)
        kind = RankFollower if rank else RankedLearner
        self.parts = LearnerParts(
            self.trainer, make_io(), self.checkpoints, published, self.reporter, self.stop, schedule, TrainingProgress()
        )
        self._learner = kind(self.ranks, self.parts)
        self.thread = threading.Thread(target=self._live, daemon=True)
        self.outcome: bool | RankLostError | None = None

    def _live(self) -> None:
        try:
            self.outcome = self._learner.run()
        except RankLostError as error:
            self.outcome = error


@pytest.fixture
def run_ranks(tmp_path: Path) -> Callable[..., list[Rank]]:
    """Runs both until they end. `turn`: called with each rank and its updates; `before`: before rank 0 saves.

    `lost_in`, `stops`: the update in which rank 0 loses the other one, when it was asked to stop, or not.
    """

    def run(
        turn: Callable[[Rank, int], None],
        before: Callable[[Rank], None] = lambda rank: None,
        lost_in: int = 0,
        stops: bool = False,
    ) -> list[Rank]:
        group = ThreadGroup()
        ranks = [Rank(rank, group, tmp_path, turn, lost_in if rank == 0 else 0) for rank in range(2)]
        ranks[0].store.before = lambda: before(ranks[0])  # type: ignore[method-assign]
        if stops:
            ranks[0].trainer.in_update = ranks[0].stop.set
        for rank in ranks:
            rank.thread.start()
        for rank in ranks:
            rank.thread.join(PATIENCE_SEC)
            assert not rank.thread.is_alive()
        return ranks

    return run


def _stop_after(updates: int) -> Callable[[Rank, int], None]:
    return lambda rank, made: rank.stop.set() if made == updates else None


def test_a_save_that_takes_longer_than_a_collective_may_loses_no_rank(run_ranks) -> None:
    said = []

    def before(rank: Rank) -> None:
        said.append(rank.reporter.saving)
        time.sleep(1.5 * COLLECTIVE_SEC)

    ranks = run_ranks(_stop_after(3), before)
    assert [rank.outcome for rank in ranks] == [True, True]
    assert said == [True, True], "one at a milestone, after 2 updates; one at the end"
    assert not ranks[0].reporter.saving
    assert ranks[0].checkpoints.saved_updates == 3


def test_a_learner_of_one_process_reports_that_it_saves_too(tmp_path) -> None:
    """A supervisor that stops the run waits for it."""
    alone, said = Rank(0, ThreadGroup(), tmp_path, lambda *_: None, 0), []
    alone.store.before = lambda: said.append(alone.reporter.saving)  # type: ignore[method-assign]
    learner = Learner(alone.parts)
    learner.progress.updates = 1
    assert learner._save(last=True)
    assert [*said, alone.reporter.saving] == [True, False]


def test_no_rank_ends_before_the_first_one_has_saved(run_ranks) -> None:
    """The supervisor would end rank 0, where the other one alone was asked to stop."""
    alive, other = [], []

    def turn(rank: Rank, updates: int) -> None:
        if rank.ranks.rank == 1:
            other.append(rank)
            if updates == 1:
                rank.stop.set()

    def before(rank: Rank) -> None:
        other[0].thread.join(0.3)
        alive.append(other[0].thread.is_alive())

    ranks = run_ranks(turn, before)
    assert [rank.outcome for rank in ranks] == [True, True]
    assert alive == [True]


@pytest.mark.parametrize("stops", [True, False])
def test_where_a_rank_is_lost_between_two_updates_what_all_have_learned_is_saved(run_ranks, stops) -> None:
    def turn(rank: Rank, updates: int) -> None:
        if updates < 3:
            return
        if rank.ranks.rank == 1:
            rank.ranks.group.leave()
            raise RankLostError("dies")
        if stops:
            rank.stop.set()

    first, _ = run_ranks(turn)
    assert first.outcome is True if stops else isinstance(first.outcome, RankLostError)
    assert first.checkpoints.saved_updates == 3
    assert "A rank is gone or silent." in first.reporter.events
    assert first.reporter.states[-1] == ("stopped" if stops else "failed")
    assert first.trainer.finished == stops
    assert not any("lost:" in event for event in first.reporter.events)


@pytest.mark.parametrize("stops", [True, False])
def test_where_a_rank_is_lost_in_an_update_nothing_is_saved_and_what_is_lost_is_said(run_ranks, stops) -> None:
    first, _ = run_ranks(lambda rank, updates: None, lost_in=4, stops=stops)
    assert first.outcome is False if stops else isinstance(first.outcome, RankLostError)
    assert first.checkpoints.saved_updates == 2, "the milestone"
    assert f"What was learned since version 2 is lost: {2 * STEPS} steps." in first.reporter.events
