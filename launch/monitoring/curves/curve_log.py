"""Where the reports of a run's curves go: several writers as one. A writer may fail and recover; the run goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from simul.launch.monitoring.curves.figures import CurveReport


class CurveWriter(Protocol):
    """Takes each report. Neither method raises; both return sentences for the view."""

    @property
    def lost(self) -> int:
        """Reports dropped since the start."""

    def write(self, report: CurveReport, now: float) -> list[str]:
        """Write a report; `now` from time.monotonic()."""

    def close(self, hurry: Callable[[], bool]) -> list[str]:
        """Finish; `hurry()` turns true where nothing may be waited for any longer."""


class CurveLog:
    """Several writers as one."""

    def __init__(self, writers: Sequence[CurveWriter]) -> None:
        self._writers = writers

    @property
    def lost(self) -> int:
        """Rows dropped, of all writers together."""
        return sum(writer.lost for writer in self._writers)

    def write(self, report: CurveReport) -> list[str]:
        """Hand a report to every writer. Returns what they have to say."""
        now = time.monotonic()
        return [sentence for writer in self._writers for sentence in writer.write(report, now)]

    def close(self, hurry: Callable[[], bool] = lambda: False) -> list[str]:
        """Finish all."""
        return [sentence for writer in self._writers for sentence in writer.close(hurry)]
