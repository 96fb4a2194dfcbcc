"""When to save what: checkpoints by the clock, milestones and past selves by decisions. A full disk stops nothing."""

from __future__ import annotations

from collections.abc import Callable

from simul.common.config.checkpoint_meta import OPTIMIZER_FILE, WEIGHTS_FILE
from simul.learner.checkpoints import Checkpoint, CheckpointStore, RunFacts
from simul.learner.league import League

GOES_ON = "Training goes on."


class CheckpointSchedule:
    """Saves what is due. `now` from time.monotonic().

    Attributes:
        saved_version, saved_updates: version of the newest checkpoint, and the updates in it; -1 for none.
    """

    def __init__(
        self,
        store: CheckpointStore,
        league: League,
        facts: RunFacts,
        *,
        every_sec: float,
        milestone_every_decisions: int,
    ) -> None:
        self.saved_version = self.saved_updates = -1
        self._saved_decisions = 0
        self.league = league
        self._store = store
        self._facts = facts
        self._every_sec = every_sec
        self._milestone_every = milestone_every_decisions
        self._next_save = 0.0
        self._next_milestone = 0

    def resume_from(self, checkpoint: Checkpoint, now: float) -> None:
        """Continue from a checkpoint."""
        self.saved_version, self.saved_updates = checkpoint.meta.version, checkpoint.meta.updates
        self._saved_decisions = checkpoint.meta.decisions
        self._next_save = now + self._every_sec
        self._next_milestone = self._after(checkpoint.meta.decisions)

    def describe_newest(self) -> str:
        """A sentence that names the newest checkpoint."""
        if self.saved_version < 0:
            return "There is no checkpoint."
        return f"The newest good checkpoint is {self._store.path(self.saved_version)}."

    def drain_notes(self) -> list[str]:
        """Sentences since the last call about damaged checkpoints and past selves."""
        return [*self._store.drain_notes(), *self.league.drain_notes()]

    def due(self, decisions: int, now: float) -> bool:
        """True when a checkpoint is due."""
        return now >= self._next_save or decisions >= self._next_milestone

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
        meta = self._facts.meta(version, decisions, updates, files, milestone)
        self._next_save = now + self._every_sec
        then = f"What was learned since is lost: {decisions - self._saved_decisions:,} steps." if last else GOES_ON
        failure = _try(lambda: self._store.save(meta, files), f"checkpoint {version}", self.saved_version, then)
        if not failure:
            self.saved_version, self.saved_updates, self._saved_decisions = version, updates, decisions
            self._next_milestone = self._after(decisions) if milestone else self._next_milestone
        return failure

    def add_past_self(self, version: int, decisions: int, weights: bytes) -> str:
        """Add the weights to the league. Returns why that failed, or an empty string."""
        meta = self._facts.meta(version, decisions, 0, {WEIGHTS_FILE: weights}, milestone=True)
        return _try(lambda: self.league.add_past_self(meta, weights), f"past self {version}", self.saved_version)

    def _after(self, decisions: int) -> int:
        return (decisions // self._milestone_every + 1) * self._milestone_every


def _try(write: Callable[[], object], what: str, last_good: int, then: str = GOES_ON) -> str:
    try:
        write()
    except OSError as error:
        stays = f"version {last_good} stays the last good one" if last_good >= 0 else "there is none yet"
        return f"The {what} could not be written: {error.strerror or error}; {stays}. {then}"
    return ""
