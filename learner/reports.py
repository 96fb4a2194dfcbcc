"""The learner's figures and alarms."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.learner.training.trainer import Trained
from simul.learner.training.update import UpdateResult

# Means over an update's minibatches, as the algorithms name them.
FIGURES = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction", "explained_variance", "gradient_norm")
PREDICTION_FIGURES = ("opponent_loss", "opponent_accuracy", "ending_loss")  # where the network predicts these
LAG_BOUNDS = (0, 1, 2, 4, 8, 16)  # histogram of policy_lag: "0", "1", "2", "3-4", ...; the last is open
STALL_AFTER_SEC = 60.0
SAY_EVERY_SEC = 60.0  # an alarm that lasts is repeated so often
NEARLY_ENDED = 0.98  # of the horizon: a run ends a little before or behind it, since it stops by answered decisions


class TrainingStatistics:
    """Counts and clocks since process start; `now` from time.monotonic()."""

    def __init__(self, now: float) -> None:
        self._start = now
        self.wait_sec = 0.0
        self.decisions = 0  # learned from in this life
        self.unrolls = 0
        self.updates = 0
        self.skipped_minibatches = 0
        self.skipped_cause = ""
        self.figures: dict[str, float] = dict.fromkeys(FIGURES, math.nan)
        self.ratio_error = (math.nan, math.nan)
        self.reward_mean = self.largest_reward = math.nan
        self.recent_lag = (math.nan, 0)
        self._lag_sum = self._lag_count = 0
        self._lag_max = 0
        self._lags: Counter[str] = Counter()

    def count_trained(self, trained: Trained) -> None:
        """Take an update, whether anything was learned or not."""
        self.count_update(trained.result)
        self.reward_mean, self.largest_reward = trained.reward_mean, trained.largest_reward
        self.decisions += trained.decisions
        self.unrolls += trained.unrolls
        if trained.lag.size:
            self.count_lag(trained.lag)

    def count_lag(self, lag: NDArray[np.int64]) -> None:
        """Take policy_lag of what an update learned from, int64 [n], n at least 1."""
        self._lag_count += lag.size
        self._lag_sum += int(lag.sum())
        self._lag_max = max(self._lag_max, int(lag.max()))
        self.recent_lag = (float(lag.mean()), int(lag.max()))
        self._lags.update(lag_histogram(lag))

    def count_update(self, result: UpdateResult) -> None:
        """Take the figures of an update; missing ones keep their last value."""
        self.updates += 1
        self.skipped_minibatches += result.skipped
        self.skipped_cause = result.cause or self.skipped_cause
        known = (*FIGURES, *PREDICTION_FIGURES)
        shown = {name: result.figures.get(name, math.nan) for name in known}
        self.figures.update({name: value for name, value in shown.items() if not math.isnan(value)})
        if (error := result.ratio_error).size:
            self.ratio_error = (float(np.quantile(error, 0.5)), float(np.quantile(error, 0.99)))

    def rate(self, now: float) -> float:
        """Decisions learned from per second since process start."""
        return self.decisions / max(now - self._start, 1e-9)

    def busy_share(self, now: float) -> float:
        """Share of the time since process start not spent waiting for unrolls."""
        return 1.0 - self.wait_sec / max(now - self._start, 1e-9)

    def lag(self) -> dict[str, Any]:
        """policy_lag of what was learned from since process start, samples at each draw."""
        mean = self._lag_sum / self._lag_count if self._lag_count else 0.0
        recent_mean, recent_max = self.recent_lag
        return {
            "mean": mean, "max": self._lag_max, "recent_mean": recent_mean, "recent_max": recent_max,
            "histogram": dict(self._lags),
        }  # fmt: skip


def lag_histogram(lag: NDArray[np.int64]) -> dict[str, int]:
    """Steps by policy_lag, in buckets named after LAG_BOUNDS. Empty buckets are left out."""
    counts: dict[str, int] = {}
    low = 0
    for high in LAG_BOUNDS:
        name = str(high) if low == high else f"{low}-{high}"
        counts[name] = int(((lag >= low) & (lag <= high)).sum())
        low = high + 1
    counts[f"{low}+"] = int((lag >= low).sum())
    return {name: count for name, count in counts.items() if count}


class StallAlarm:
    """Reports once when the version stops advancing although `what` arrive, and once when they stop arriving."""

    def __init__(self, now: float, what: str = "unrolls") -> None:
        self._what = what
        self._advanced_at = self._arrived_at = now
        self._arrived = self._arrived_then = 0
        self._silence_said = False
        self.raised = False

    def postpone(self, now: float) -> None:
        """Nothing can have arrived before `now`: no server has been admitted."""
        self._advanced_at = self._arrived_at = now

    def record_advance(self, now: float, arrived: int) -> None:
        """The version advanced, or need not yet; `arrived`: how many arrived so far."""
        self._advanced_at, self._arrived_then, self.raised = now, arrived, False

    def check(self, now: float, arrived: int) -> str:
        """A sentence when an alarm is due, else empty."""
        if arrived != self._arrived:
            if now - self._arrived_at > STALL_AFTER_SEC:  # they only begin to arrive, or to arrive again
                self._advanced_at, self._arrived_then = now, self._arrived
            self._arrived, self._arrived_at, self._silence_said = arrived, now, False
        if not self._silence_said and now - self._arrived_at >= STALL_AFTER_SEC:
            self._silence_said = True
            what = self._what.removesuffix("s")
            return f"No {what} has arrived for {now - self._arrived_at:.0f} s: is a game played, and recorded?"
        new, still_arrive = arrived - self._arrived_then, now - self._arrived_at < STALL_AFTER_SEC / 2
        if self.raised or not new or not still_arrive or now - self._advanced_at < STALL_AFTER_SEC:
            return ""
        self.raised = True
        return (
            f"ALARM: the policy version has not advanced for {now - self._advanced_at:.0f} s, "
            f"although {new} {self._what} arrived."
        )


class LagAlarm:
    """Reports when a server serves weights so old that what it plays may soon be dropped as stale."""

    def __init__(self, max_policy_lag: float) -> None:
        """`max_policy_lag`: math.inf where nothing is dropped for its age."""
        self._limit = max_policy_lag
        self._say_at = -math.inf

    def check(self, now: float, lag: int) -> str:
        """A sentence while `lag`, versions between the newest one and the oldest one served, is past half the limit.

        At most one every SAY_EVERY_SEC; "" else.
        """
        if lag <= self._limit / 2 or now < self._say_at:
            return ""
        self._say_at = now + SAY_EVERY_SEC
        return (
            f"ALARM: a server is {lag} versions behind the newest; beyond {self._limit} (learner.max_policy_lag) "
            "what is played there is dropped as stale."
        )


class SkipAlarm:
    """Reports skipped minibatches: the first one, then at most once a minute."""

    def __init__(self) -> None:
        self._say_at = -math.inf

    def check(self, skipped: int, cause: str, total: int, now: float) -> str:
        """A sentence about an update that skipped minibatches, `total` since the start; else empty."""
        if not skipped or now < self._say_at:
            return ""
        self._say_at = now + SAY_EVERY_SEC
        return f"ALARM: a minibatch was skipped, nothing was learned from it ({total} since the start): {cause}"


class ScheduleNotice:
    """Reports once that the schedules end: when they are over, or at once in a start that is near or past that."""

    def __init__(self, horizon: int, decisions: int) -> None:
        """`horizon`: decisions at which the schedules end; 0: nothing is scheduled. `decisions`: learned so far."""
        self._horizon = horizon
        self._say_at: float = decisions if decisions >= NEARLY_ENDED * horizon else horizon
        if not horizon:
            self._say_at = math.inf

    def check(self, decisions: int) -> str:
        """A sentence the first time that it is due after so many learned decisions; else empty."""
        if decisions < self._say_at:
            return ""
        self._say_at = math.inf
        left = self._horizon - decisions
        when = f"end in {left:,} decisions, at" if left > 0 else "ended at"
        return (
            f"The schedules of learning rate and entropy {when} {self._horizon:,} decisions learned: from there on the "
            "final values stay. --new-horizon, or a larger learner.total_decisions, stretches them (docs/recipes.md)."
        )
