"""When to save what: checkpoints by the clock and for evaluations, milestones and past selves by decisions.

A full disk stops nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from simul.common.checkpoints.meta import OPTIMIZER_FILE, WEIGHTS_FILE
from simul.learner.checkpoints.checkpoint_store import Checkpoint, CheckpointStore, RunFacts
from simul.learner.checkpoints.league import League
from simul.learner.checkpoints.store_mirror import StoreMirror

GOES_ON = "Training goes on."
EVALUATION_SAVE_SEC = 5.0  # at least so long between checkpoints for evaluations: each of those takes seconds


class CheckpointSchedule:
    """Saves what is due. `now` from time.monotonic().

    Attributes:
        saved_version: version of the newest checkpoint; -1 for none.
        saved_updates: the updates in it; 0 for none.
        store: where they are written.
        mirror: copies what is saved to the run's store; None: it has no store.
        horizon: kept in each checkpoint, see `CheckpointMeta`.

    Args:
        begin: the time of the start.
        evaluation_every_decisions: learned ones from one evaluation to the next, of which each needs a new checkpoint;
            0: none.
    """

    def __init__(
        self,
        store: CheckpointStore,
        league: League,
        facts: RunFacts,
        *,
        begin: float,
        every_sec: float,
        milestone_every_decisions: int,
        evaluation_every_decisions: int = 0,
        mirror: StoreMirror | None = None,
    ) -> None:
        self.saved_version, self.saved_updates = -1, 0
        self.horizon = 0
        self._saved_decisions = 0
        self.league = league
        self.mirror = mirror
        self.store = store
        self._facts = facts
        self._every_sec = every_sec
        self._milestone_every = milestone_every_decisions
        self._evaluation_every = evaluation_every_decisions
        self._set_next(0, begin)
        self._next_milestone = milestone_every_decisions
        self._milestone_not_before = begin

    def resume_from(self, checkpoint: Checkpoint, now: float) -> None:
        """Continue from a checkpoint."""
        self.saved_version, self.saved_updates = checkpoint.meta.version, checkpoint.meta.updates
        self._saved_decisions = checkpoint.meta.decisions
        self._set_next(checkpoint.meta.decisions, now)
        self._next_milestone = _next_multiple(checkpoint.meta.decisions, self._milestone_every)

    def describe_newest(self) -> str:
        """A sentence that names the newest checkpoint."""
        if self.saved_version < 0:
            return "There is no checkpoint."
        return f"The newest good checkpoint is {self.store.path(self.saved_version)}."

    def describe_lost(self, decisions: int) -> str:
        """A sentence about what was learned since the newest checkpoint, of `decisions`; "" where that is nothing."""
        if not (lost := decisions - self._saved_decisions):
            return ""
        since = f"version {self.saved_version}" if self.saved_version >= 0 else "the start"
        return f"What was learned since {since} is lost: {lost:,} steps."

    def drain_notes(self) -> list[str]:
        """Sentences since the last call about damaged checkpoints and past selves."""
        return [*self.store.drain_notes(), *self.league.drain_notes()]

    def due(self, decisions: int, now: float) -> bool:
        """True when a checkpoint is due."""
        evaluation = decisions >= self._next_evaluation and now >= self._evaluation_not_before
        milestone = decisions >= self._next_milestone and now >= self._milestone_not_before
        return now >= self._next_save or milestone or evaluation

    def save(
        self,
        version: int,
        decisions: int,
        updates: int,
        weights: bytes,
        optimizer: bytes,
        now: float,
        *,
        last: bool = False,
    ) -> str:
        """Write a checkpoint. Returns why that failed, or an empty string.

        `last`: the run ends, so there is no later attempt.
        """
        files = {WEIGHTS_FILE: weights, OPTIMIZER_FILE: optimizer}
        milestone = decisions >= self._next_milestone
        meta = self._facts.meta(version, decisions, updates, files, milestone, self.horizon)
        self._set_next(decisions, now)
        then = f"What was learned since is lost: {decisions - self._saved_decisions:,} steps." if last else GOES_ON
        failure = _try(lambda: self.store.save(meta, files), f"checkpoint {version}", self.saved_version, then)
        if not failure:
            self.saved_version, self.saved_updates, self._saved_decisions = version, updates, decisions
            if milestone:
                self._next_milestone = _next_multiple(decisions, self._milestone_every)
            self._notify_mirror()
        else:
            self._milestone_not_before = self._next_save
        return failure

    def add_past_self(self, version: int, decisions: int, weights: bytes) -> str:
        """Add the weights to the league. Returns why that failed, or an empty string."""
        meta = self._facts.meta(version, decisions, 0, {WEIGHTS_FILE: weights}, True, self.horizon)
        failure = _try(lambda: self.league.add_past_self(meta, weights), f"past self {version}", self.saved_version)
        if not failure:
            self._notify_mirror()
        return failure

    def _notify_mirror(self) -> None:
        if self.mirror is not None:
            self.mirror.notify_saved(time.monotonic())

    def _set_next(self, decisions: int, now: float) -> None:
        self._next_save = now + self._every_sec
        self._evaluation_not_before = now + EVALUATION_SAVE_SEC
        every = self._evaluation_every
        self._next_evaluation = _next_multiple(decisions, every) if every else math.inf


def _next_multiple(decisions: int, every: int) -> int:
    return (decisions // every + 1) * every


def _try(write: Callable[[], object], what: str, last_good: int, then: str = GOES_ON) -> str:
    try:
        write()
    except OSError as error:
        stays = f"version {last_good} stays the last good one" if last_good >= 0 else "there is none yet"
        return f"The {what} could not be written: {error.strerror or error}; {stays}. {then}"
    return ""
