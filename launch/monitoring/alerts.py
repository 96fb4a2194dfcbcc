"""Alerts: a process that is silent or not ready, a run that learns nothing or loses strength. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

ALERT_AFTER_SEC = 10.0  # a shorter silence is shown only in the table of processes
ALERT_EVERY_SEC = 60.0  # at most one alert a process
FALLS = 3  # evaluations in a row, each below the one before
STANDSTILL_SEC = 60.0  # the first alert; the next ones each time the duration has doubled


class HeartbeatAlerts:
    """Processes that send no reports."""

    def __init__(self) -> None:
        self._silent_since: dict[str, float] = {}  # of those with an open alert
        self._alerted_at: dict[str, float] = {}
        self._sentences: list[str] = []

    def update(self, name: str, silent_sec: float | None, now: float) -> None:
        """The process `name` has sent no report for `silent_sec`; None: it is dead, or not ready yet."""
        if silent_sec is None:
            self._silent_since.pop(name, None)
        elif name in self._silent_since:
            if silent_sec < ALERT_AFTER_SEC:
                lasted_sec = now - silent_sec - self._silent_since.pop(name)
                self._sentences.append(f"{name} reports again, after {lasted_sec:.0f} s")
        elif silent_sec >= ALERT_AFTER_SEC and now - self._alerted_at.get(name, -ALERT_EVERY_SEC) >= ALERT_EVERY_SEC:
            self._silent_since[name] = now - silent_sec
            self._alerted_at[name] = now
            why = "it hangs, or the machine is overloaded"
            self._sentences.append(f"{name} has sent no report for {silent_sec:.0f} s: {why}")

    def take_alerts(self) -> list[str]:
        """Sentences since the last call."""
        sentences, self._sentences = self._sentences, []
        return sentences

    def exclude_pause(self, seconds: float) -> None:
        """The supervisor itself was paused for `seconds`: do not count them."""
        self._silent_since = {name: at + seconds for name, at in self._silent_since.items()}


class Standstill:
    """How long something has made no progress, and when the next alert about it is due."""

    def __init__(self, now: float) -> None:
        self._since = now
        self._alert_at = now + STANDSTILL_SEC
        self._alerted = False

    def resumed(self, now: float) -> float:
        """There is progress. Returns the duration of the standstill if there was an alert about it, else 0."""
        alerted, self._alerted = self._alerted, False
        lasted_sec = now - self._since
        self._since, self._alert_at = now, now + STANDSTILL_SEC
        return lasted_sec if alerted else 0.0

    def stalled(self, now: float) -> float:
        """There is no progress. Returns the duration so far if an alert is due now, else 0."""
        if now < self._alert_at:
            return 0.0
        lasted_sec = now - self._since
        self._alert_at, self._alerted = self._since + 2 * max(lasted_sec, STANDSTILL_SEC), True
        return lasted_sec

    def exclude_pause(self, seconds: float) -> None:
        """The supervisor itself was paused for `seconds`: do not count them."""
        self._since += seconds
        self._alert_at += seconds


class OutageAlerts:
    """Processes that are not ready for long, such as one that dies in every start."""

    def __init__(self) -> None:
        self._standstills: dict[str, Standstill] = {}

    def update(self, name: str, works: bool, last_error: str, now: float) -> str:
        """Whether the process `name` works; `last_error`: of its last life that died. Returns an alert, or ""."""
        standstill = self._standstills.setdefault(name, Standstill(now))
        if works:
            lasted_sec = standstill.resumed(now)
            return f"{name} works again, after {lasted_sec:.0f} s" if lasted_sec else ""
        lasted_sec = standstill.stalled(now)
        why = f"; it died with: {last_error}" if last_error else ""
        return f"{name} has not worked for {lasted_sec:.0f} s{why}" if lasted_sec else ""

    def exclude_pause(self, seconds: float) -> None:
        """As `Standstill.exclude_pause`."""
        for standstill in self._standstills.values():
            standstill.exclude_pause(seconds)


class StrengthAlerts:
    """Evaluations of a run whose scores fall, by more than chance."""

    def __init__(self, before: Iterable[float] = ()) -> None:
        """`before`: the scores of the evaluations so far, the oldest first."""
        self._scores: list[float] = []  # falling, of the last evaluations
        for score in before:
            self._add(score)

    def update(self, score: float, margin: float) -> str:
        """The score of an evaluation, and half of its 95% interval. Returns an alert, or ""."""
        self._add(score)
        by_chance = math.sqrt(2) * margin  # so far apart lie 95% of two such scores of one policy
        if len(self._scores) <= FALLS or self._scores[0] - score <= by_chance:
            return ""
        falling = ", ".join(f"{each:.4g}" for each in self._scores)
        return f"strength has fallen in {len(self._scores) - 1} evaluations in a row: {falling}"

    def _add(self, score: float) -> None:
        if self._scores and score >= self._scores[-1]:
            self._scores.clear()
        self._scores.append(score)


class LearningAlerts:
    """A run in which nothing is learned, with what became of its rows and steps instead."""

    def __init__(self, now: float) -> None:
        self._standstill = Standstill(now)
        self._learned = -1.0
        self._before: dict[str, float] = {}

    def exclude_pause(self, seconds: float) -> None:
        """As `Standstill.exclude_pause`."""
        self._standstill.exclude_pause(seconds)

    def update(self, learned: float, waiting: float, became: Mapping[str, float], now: float) -> str:
        """Returns an alert, or "".

        Args:
            learned: steps learned from so far. waiting: steps that wait for an update.
            became: how many rows were refused and steps dropped so far, by cause.
        """
        if learned != self._learned:
            self._learned, self._before = learned, dict(became)
            lasted_sec = self._standstill.resumed(now)
            return f"the run learns again, after {lasted_sec:.0f} s" if lasted_sec else ""
        lasted_sec = self._standstill.stalled(now)
        if not lasted_sec:
            return ""
        new = {cause: n - self._before.get(cause, 0) for cause, n in became.items()}
        grown = [f"{cause} {n:,.0f}" for cause, n in sorted(new.items(), key=lambda item: -item[1]) if n > 0]
        causes = ", ".join(grown) or "no row was refused and no step dropped"
        return f"nothing was learned for {lasted_sec:.0f} s ({waiting:,.0f} steps wait for an update): {causes}"
