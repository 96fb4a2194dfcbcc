"""Sentences about processes that say nothing or cannot work, and about a run that learns nothing. Rare ones. Pure."""

from __future__ import annotations

from collections.abc import Mapping

ALERT_AFTER_SEC = 10.0  # what is shorter stands in the table of processes, and pushes no other event out
ALERT_EVERY_SEC = 60.0  # of one process, so seldom
STANDSTILL_SEC = 60.0  # told after so long, and again each time that it has lasted twice as long


class HeartbeatAlerts:
    """Who was said to be silent, and what is left to say."""

    def __init__(self) -> None:
        self._silent_since: dict[str, float] = {}  # of which was said that they are silent
        self._told_at: dict[str, float] = {}
        self._sentences: list[str] = []

    def update(self, name: str, silent_sec: float | None, now: float) -> None:
        """The process `name` said nothing for so long; None for one that is dead, or need not speak yet."""
        if silent_sec is None:
            self._silent_since.pop(name, None)
        elif name in self._silent_since:
            if silent_sec < ALERT_AFTER_SEC:
                lasted_sec = now - silent_sec - self._silent_since.pop(name)
                self._sentences.append(f"{name} speaks again, after {lasted_sec:.0f} s")
        elif silent_sec >= ALERT_AFTER_SEC and now - self._told_at.get(name, -ALERT_EVERY_SEC) >= ALERT_EVERY_SEC:
            self._silent_since[name] = now - silent_sec
            self._told_at[name] = now
            why = "it hangs, or the machine is overloaded"
            self._sentences.append(f"{name} says nothing for {silent_sec:.0f} s: {why}")

    def take_alerts(self) -> list[str]:
        """Sentences since the last call."""
        sentences, self._sentences = self._sentences, []
        return sentences

    def exclude_pause(self, seconds: float) -> None:
        """Who watches stood still itself for so long, which counts for nobody."""
        self._silent_since = {name: at + seconds for name, at in self._silent_since.items()}


class Standstill:
    """Since when something does not go on, and when that is to be told."""

    def __init__(self, now: float) -> None:
        self._since = now
        self._tell_at = now + STANDSTILL_SEC

    def resumed(self, now: float) -> float:
        """It does. Returns how long it did not, where that was told; else 0."""
        told = self._tell_at > self._since + STANDSTILL_SEC
        lasted_sec = now - self._since
        self._since, self._tell_at = now, now + STANDSTILL_SEC
        return lasted_sec if told else 0.0

    def stalled(self, now: float) -> float:
        """It does not. Returns for how long, where that is to be told now; else 0."""
        if now < self._tell_at:
            return 0.0
        lasted_sec = now - self._since
        self._tell_at = self._since + 2 * max(lasted_sec, STANDSTILL_SEC)
        return lasted_sec

    def exclude_pause(self, seconds: float) -> None:
        """Who watches stood still itself for so long, which does not count."""
        self._since += seconds
        self._tell_at += seconds


class OutageAlerts:
    """Processes that are not ready for long, such as one that dies in every start."""

    def __init__(self) -> None:
        self._standstills: dict[str, Standstill] = {}

    def update(self, name: str, works: bool, last_words: str, now: float) -> str:
        """The process `name` works or not; `last_words` of its last life that died. A sentence, or nothing."""
        standstill = self._standstills.setdefault(name, Standstill(now))
        if works:
            lasted_sec = standstill.resumed(now)
            return f"{name} works again, after {lasted_sec:.0f} s" if lasted_sec else ""
        lasted_sec = standstill.stalled(now)
        why = f"; it died with: {last_words}" if last_words else ""
        return f"{name} has not worked for {lasted_sec:.0f} s{why}" if lasted_sec else ""

    def exclude_pause(self, seconds: float) -> None:
        """As `Standstill.slept`."""
        for standstill in self._standstills.values():
            standstill.exclude_pause(seconds)


class LearningAlerts:
    """A run in which nothing is learned, and what its rows and steps became instead."""

    def __init__(self, now: float) -> None:
        self._standstill = Standstill(now)
        self._learned = -1.0
        self._before: dict[str, float] = {}

    def exclude_pause(self, seconds: float) -> None:
        """As `Standstill.slept`."""
        self._standstill.exclude_pause(seconds)

    def update(self, learned: float, waiting: float, became: Mapping[str, float], now: float) -> str:
        """A sentence, or nothing.

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
        told = [f"{cause} {n:,.0f}" for cause, n in sorted(new.items(), key=lambda item: -item[1]) if n > 0]
        causes = ", ".join(told) or "no row was refused and no step dropped"
        return f"nothing was learned for {lasted_sec:.0f} s ({waiting:,.0f} steps wait for an update): {causes}"
