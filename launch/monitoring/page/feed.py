"""What one browser has been sent of the runs, and what it is to be sent next: only what changed. Pure: time comes in.

A page that is open for days gets a few megabytes a day: figures that change all the time are sent the more rarely the
longer it is open, and `runs/curve_tail.py` bounds the curves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simul.launch.monitoring.page.runs.watched_run import WatchedRun

FIRST_EVERY_SEC, LAST_EVERY_SEC = 1.0, 10.0
EVERY_SHARE = 0.01  # of the time that the page is open


class Feed:
    """Of one connection. `begin`: monotonic seconds."""

    def __init__(self, runs: Sequence[WatchedRun], begin: float) -> None:
        self._runs = [_RunFeed(run) for run in runs]
        self._begin = begin
        self._next = begin

    def take(self, now: float) -> list[dict[str, Any]]:
        """A message for each run with news: `run` is its place, the other keys are what changed."""
        gradual = now >= self._next
        if gradual:
            interval_sec = EVERY_SHARE * (now - self._begin)
            self._next = now + min(max(interval_sec, FIRST_EVERY_SEC), LAST_EVERY_SEC)
        taken = ((place, feed.take(gradual=gradual)) for place, feed in enumerate(self._runs))
        return [{"run": place, **changes} for place, changes in taken if changes]


class _RunFeed:
    def __init__(self, run: WatchedRun) -> None:
        self._run = run
        self._sent: dict[str, Any] = {}
        self._events = 0
        self._generation = -1
        self._rows = 0
        self._tail: Any = None

    def take(self, *, gradual: bool) -> dict[str, Any]:
        run = self._run
        changes = self._changed(run.urgent)
        if new := run.events_seen - self._events:
            changes["events"] = run.events[-new:]
            self._events = run.events_seen
        if gradual:
            changes |= self._changed(run.gradual)
            if curves := self._curves():
                changes["curves"] = curves
        return changes

    def _changed(self, state: Mapping[str, Any]) -> dict[str, Any]:
        changed = {name: value for name, value in state.items() if self._sent.get(name) != value}
        self._sent |= changed
        return changed

    def _curves(self) -> dict[str, Any]:
        """`charts` where the curves begin anew; `rows` that are new; `tail`, which takes the place of the last tail."""
        curves = self._run.curves
        found: dict[str, Any] = {}
        if curves.generation != self._generation:
            self._generation, self._rows, self._tail = curves.generation, 0, None
            found["charts"] = [
                {"title": chart.title, "unit": chart.unit, "lines": [
                    {"label": line.label, "band": bool(line.low)} for line in chart.lines
                ]}
                for chart in curves.charts
            ]  # fmt: skip
        tail = curves.tail()
        if len(curves.rows) > self._rows or tail != self._tail:
            found |= {"rows": curves.rows[self._rows :], "tail": tail}
            self._rows, self._tail = len(curves.rows), tail
        return found
