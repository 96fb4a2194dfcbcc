"""The learner's main loop: pull, update, publish, save, report."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from simul.common.errors import DivergedError, NothingLearnedError
from simul.common.nets.io import first_nonfinite, weights_to_bytes
from simul.common.protocol.messages import LEARNER_POLICY
from simul.common.role.lifecycle import StopFlag
from simul.common.role.reports import Reporter
from simul.common.runtime.metrics import Stages
from simul.common.store.layout import STOP_WAIT_SEC
from simul.learner.algorithms import Settings
from simul.learner.checkpoints.checkpoint_schedule import CheckpointSchedule
from simul.learner.checkpoints.last_version import LastVersionFile
from simul.learner.checkpoints.optimizer_state import optimizer_to_bytes
from simul.learner.io.learner_io import LearnerIO
from simul.learner.reports import LagAlarm, ScheduleNotice, SkipAlarm, StallAlarm, TrainingStatistics
from simul.learner.training.trainer import Trainer
from simul.learner.training.update import STAGES

STOP_SAY_SEC = 3.0  # a stop that waits longer for the store says so
PULL_SEC = 0.2  # longest wait for a full batch; signals and reports are handled in between


@dataclass(frozen=True)
class LearningSchedule:
    """What changes over time, `learning_rate` and `settings` by the decisions learned, and limits.

    `max_policy_lag`: math.inf where nothing is dropped for its age.
    """

    max_skipped_minibatches: int
    max_policy_lag: float
    learning_rate: Callable[[int], float]
    settings: Callable[[int], Settings]

    def changes(self, decisions: int) -> bool:
        """Whether the values after so many decisions are not the first ones."""
        first, then = ((self.learning_rate(each), self.settings(each)) for each in (0, decisions))
        return first != then


@dataclass
class TrainingProgress:
    """State of training over all lives: `version` of the published weights, `decisions` learned, `updates` made.

    `horizon`: decisions at which the schedules end.
    """

    version: int = 0
    decisions: int = 0
    updates: int = 0
    horizon: int = 0


@dataclass(frozen=True)
class LearnerParts:
    """What the learner's loop works with. `stages`: where its time goes; the trainer's laps are in it, too."""

    trainer: Trainer[Any]
    io: LearnerIO
    checkpoints: CheckpointSchedule
    last_version: LastVersionFile
    reporter: Reporter
    stop: StopFlag
    schedule: LearningSchedule
    progress: TrainingProgress
    stages: Stages = field(default_factory=lambda: Stages(STAGES))


class Learner:
    """The only writer of weights."""

    def __init__(self, parts: LearnerParts) -> None:
        self._stages = parts.stages
        self.progress = parts.progress
        self._trainer = parts.trainer
        self._io = parts.io
        self._checkpoints = parts.checkpoints
        self._last_version = parts.last_version
        self._reporter = parts.reporter
        self._stop = parts.stop
        self._schedule = parts.schedule
        self._weights = b""
        self._saving = False
        self._statistics = TrainingStatistics(time.monotonic())
        self._alarm = StallAlarm(time.monotonic(), parts.io.what)
        self._skip_alarm = SkipAlarm()
        self._lag_alarm = LagAlarm(parts.schedule.max_policy_lag)
        horizon = parts.progress.horizon
        scheduled = horizon > 0 and parts.schedule.changes(horizon)
        self._schedule_notice = ScheduleNotice(horizon if scheduled else 0, parts.progress.decisions)

    def run(self) -> bool:
        """Run until a signal; finish, save and report the current update. False where it could not be saved.

        Raises:
            DivergedError: the weights are not finite.
            NothingLearnedError: `schedule.max_skipped_minibatches` gradients in a row were not finite.
        """
        try:
            return self._run()
        except (DivergedError, NothingLearnedError) as error:
            self._report(event=str(error))
            raise

    def _run(self) -> bool:
        self._io.start()
        self._publish()
        self._save()
        self._stages.start()
        self._report(state="ready")
        while self._agree_to_go_on():
            self._skip_served_versions()
            if (batch := self._pull()) is not None:
                if self._update(batch):
                    self._publish()
                self._stages.lap("publish")
                self._save()
                self._stages.lap("save")
                self._check_skipped()
            self._report()
            self._stages.lap("report")
        return self._finish()

    def _finish(self) -> bool:
        """Save, and report for the last time. False where what was learned could not be saved."""
        saved = self._save(last=True)
        self._io.finish()
        self._trainer.finish()
        self._finish_store()
        self._report(state="stopped")
        return saved

    def _agree_to_go_on(self) -> bool:
        return not self._stop

    def _pull(self) -> Any:
        begin = time.monotonic()
        batch = self._trainer.pull(PULL_SEC, self.progress.version)
        self._stages.lap("wait")
        self._statistics.wait_sec += time.monotonic() - begin
        self._note_wait()
        return batch

    def _note_wait(self) -> None:
        if self._trainer.waits_for_data:
            self._alarm.record_advance(time.monotonic(), self._arrived)

    @property
    def _arrived(self) -> int:
        """Unrolls and samples that have arrived, dropped ones included."""
        return self._io.arrived

    def _update(self, batch: Any) -> bool:
        """False where every minibatch was skipped: weights and version are unchanged."""
        progress, schedule, statistics = self.progress, self._schedule, self._statistics
        rate, settings = schedule.learning_rate(progress.decisions), schedule.settings(progress.decisions)
        trained = self._trainer.train(batch, progress.version, rate, settings)
        result = trained.result
        statistics.count_trained(trained)
        progress.decisions += trained.all_decisions
        now, learned = time.monotonic(), result.steps > 0
        if learned:
            progress.version += 1
            progress.updates += 1
            self._alarm.record_advance(now, self._arrived)
        if sentence := self._skip_alarm.check(result.skipped, result.cause, statistics.skipped_minibatches, now):
            self._report(event=sentence)
        self._stages.lap("update")
        return learned

    def _check_skipped(self) -> None:
        """Raises NothingLearnedError, after saving, where too many minibatches in a row were skipped."""
        in_a_row = self._trainer.updater.skipped_in_a_row
        if in_a_row < self._schedule.max_skipped_minibatches:
            return
        self._save(last=True)
        self._finish_store()
        raise NothingLearnedError(
            f"The run ends: {in_a_row} minibatches in a row were skipped, and nothing was learned from them "
            f"(learner.max_skipped_minibatches): {self._statistics.skipped_cause} {self._checkpoints.describe_newest()}"
        )

    def _publish(self) -> None:
        """Publish the weights and the resident past selves. Raises DivergedError."""
        progress, league = self.progress, self._checkpoints.league
        self._check_finite()
        self._weights = weights_to_bytes(self._trainer.updater.network)
        if league.due(progress.decisions):
            event = self._checkpoints.add_past_self(progress.version, progress.decisions, self._weights)
            joined = f"A past self joined the league: past/{progress.version}."
            for sentence in (event or joined, *self._checkpoints.drain_notes()):
                self._report(event=sentence)
        resident = (LEARNER_POLICY, *(past.name for past in league.resident))
        for past in league.resident:
            if not self._io.publisher.has_policy(past.name):
                self._io.publish(past.name, past.version, past.weights, resident)
        if failure := self._last_version.write(progress.version):
            self._report(event=failure)
        share = min(progress.decisions / progress.horizon, 1.0) if progress.horizon else 0.0
        self._io.publish(LEARNER_POLICY, progress.version, self._weights, resident, share)

    def _check_finite(self) -> None:
        if name := first_nonfinite(self._trainer.updater.network.state_dict()):
            raise DivergedError(
                f"Version {self.progress.version} has diverged: {name} is not finite. It is neither served nor saved, "
                "and training goes on from the newest checkpoint. Where this comes again, lower learner.learning_rate."
            )

    def _save(self, last: bool = False) -> bool:
        """Write a checkpoint if one is due; never one with nothing learned, which would push out an older one.

        False where it could not be written.
        """
        progress, now = self.progress, time.monotonic()
        if progress.updates == self._checkpoints.saved_updates or not (
            last or self._checkpoints.due(progress.decisions, now)
        ):
            return True
        return self._write_checkpoint(now, last=last)

    def _write_checkpoint(self, now: float, *, last: bool) -> bool:
        """The supervisor hears of it before: it does not kill a learner that writes. False where that failed."""
        self._report_saving(True)
        progress, updater = self.progress, self._trainer.updater
        optimizer = optimizer_to_bytes(updater.network, updater.optimizer, updater.statistics())
        failure = self._checkpoints.save(
            progress.version, progress.decisions, progress.updates, self._weights, optimizer, now, last=last
        )
        for sentence in filter(None, (failure, *self._checkpoints.drain_notes())):
            self._report(event=sentence)
        self._report_saving(False)
        return not failure

    def _report_saving(self, saving: bool) -> None:
        self._saving = saving
        self._reporter.send(self._metrics(time.monotonic()))

    def _finish_store(self) -> None:
        """Wait until the run's store has what was saved, at most STOP_WAIT_SEC; then report what it lacks."""
        if (mirror := self._checkpoints.mirror) is None:
            return
        began, said = time.monotonic(), False
        while not mirror.wait_for_last() and (waited := time.monotonic() - began) < STOP_WAIT_SEC:
            say, said = waited > STOP_SAY_SEC and not said, waited > STOP_SAY_SEC
            self._report(event=f"Waiting for the store, at most {STOP_WAIT_SEC:.0f} s." if say else "")
            time.sleep(PULL_SEC)
        if sentence := mirror.describe_missing():
            self._report(event=sentence)

    def _skip_served_versions(self) -> None:
        """Continue above the versions that servers have already served: versions only grow."""
        foreign = self._io.publisher.foreign_version
        if foreign >= self.progress.version:
            self.progress.version = foreign + 1
            self._announce_skipped(foreign)

    def _announce_skipped(self, foreign: int) -> None:
        self._report(event=f"A server has served version {foreign}: the versions go on from there.")
        self._publish()

    def _report(self, state: str | None = None, event: str = "") -> None:
        now, mirror = time.monotonic(), self._checkpoints.mirror
        events = [
            event,
            *(mirror.drain_notes() if mirror is not None else ()),
            *self._io.drain_events(),
            *self._trainer.drain_notes(),
            *self._alarms(now),
        ]
        events = [sentence for sentence in events if sentence]
        for sentence in events[:-1]:
            self._reporter.send(self._metrics(now), event=sentence)
        if events or state or self._reporter.due(now):
            self._reporter.send(self._metrics(now), state=state, event=events[-1] if events else "")

    def _alarms(self, now: float) -> list[str]:
        if not self._io.met_server:
            self._alarm.postpone(now)
        return [
            self._alarm.check(now, self._arrived),
            self._lag_alarm.check(now, self._io.version_lag),
            self._schedule_notice.check(self.progress.decisions),
        ]

    def _metrics(self, now: float) -> dict[str, Any]:
        progress, statistics, io = self.progress, self._statistics, self._io
        mirror = self._checkpoints.mirror
        return {
            "policy_version": progress.version,
            "checkpoint_version": self._checkpoints.saved_version,
            "unsaved_updates": progress.updates - self._checkpoints.saved_updates,
            "saving": self._saving,
            "store_behind_sec": mirror.behind_sec(now) if mirror is not None else math.nan,
            "store_state": mirror.state if mirror is not None else "",
            "updates": progress.updates,
            "decisions_learned": progress.decisions,
            "decisions_learned_since_start": statistics.decisions,
            "decisions_per_sec": statistics.rate(now),
            "busy_share": statistics.busy_share(now),
            "stage_sec": dict(self._stages.seconds),
            "loop_sec": self._stages.elapsed_sec,
            "policy_lag": statistics.lag(),
            "unrolls": {"learned": statistics.unrolls, **io.unrolls.account()},
            "samples": io.samples.account(),
            "replay": self._trainer.figures(),
            "steps_waiting": self._trainer.waiting_steps,
            "steps_dropped": io.unrolls.counts.dropped_rows,
            "learning_rate": self._schedule.learning_rate(progress.decisions),
            "entropy_coefficient": self._schedule.settings(progress.decisions).entropy_coefficient,
            "ratio_error_p50": statistics.ratio_error[0],
            "ratio_error_p99": statistics.ratio_error[1],
            "reward_mean": statistics.reward_mean,
            "largest_reward": statistics.largest_reward,
            "skipped_minibatches": statistics.skipped_minibatches,
            "skipped_cause": statistics.skipped_cause,
            "untrusted": io.untrusted,
            "past_resident": [past.name for past in self._checkpoints.league.resident],
            "stalled": self._alarm.raised,
            "signalled": self._stop.signalled,
            **statistics.figures,
        }
