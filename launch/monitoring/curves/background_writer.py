"""What is not ours gets its reports in a thread, so that it may be slow or hang: services, and a user's callback."""

from __future__ import annotations

import math
import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from simul.launch.monitoring.curves.callback_figures import CallbackFigures
from simul.launch.monitoring.curves.figures import CurveReport

MOST_QUEUED = 600  # reports that a slow writer is behind; beyond, the oldest are dropped
FINISH_SEC = 20.0  # what a writer has at the end of a run
HANGS_SEC = 30.0  # a writer that is at one report for so long is said to hang
HANGING_FINISH_SEC = 1.0  # what it has at the end of a run
Write = Callable[[CurveReport], None]


class BackgroundWriter:
    """Hands each report to `write` in a thread. What it raises is said once, and nothing more is handed to it.

    Args:
        name: in sentences.
        start: called in the thread, before the first report; returns `write` and what ends it.
        attempts: how often `write` may fail in a row before it is dropped.
    """

    def __init__(self, name: str, start: Callable[[], tuple[Write, Callable[[], None]]], attempts: int = 1) -> None:
        self._lost = 0
        self._name = name
        self._start = start
        self._attempts = attempts
        self._reports: queue.Queue[CurveReport | None] = queue.Queue()
        self._sentences: queue.Queue[str] = queue.Queue()
        self._dropped = False
        self._busy_since = math.inf  # time.monotonic() at which the thread began what it is at
        self._said_busy_since = math.inf
        self._thread = threading.Thread(target=self._work, name=f"simul-{name}", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Reports dropped, because the writer was too slow."""
        return self._lost

    def write(self, report: CurveReport, now: float) -> list[str]:
        """Queue a report. A writer that is far behind loses the oldest ones."""
        if not self._dropped:
            if self._reports.qsize() >= MOST_QUEUED:
                self._reports.get_nowait()
                self._lost += 1
            self._reports.put(report)
        return [*self._said(), *self._hangs(now)]

    def close(self, hurry: Callable[[], bool]) -> list[str]:
        """Wait until everything is handed over, at most FINISH_SEC, or HANGING_FINISH_SEC where the writer hangs."""
        self._reports.put(None)
        now = time.monotonic()
        deadline = now + (HANGING_FINISH_SEC if now - self._busy_since > HANGS_SEC else FINISH_SEC)
        while self._thread.is_alive() and time.monotonic() < deadline and not hurry():
            self._thread.join(0.1)
        late = [f"{self._name} did not finish in time: its last reports may be missing."]
        return [*self._said(), *(late if self._thread.is_alive() else [])]

    def say(self, sentence: str) -> None:
        """A sentence of `write`, for the next call of `write` or `close` to return."""
        self._sentences.put(sentence)

    def _said(self) -> list[str]:
        sentences = []
        while not self._sentences.empty():
            sentences.append(self._sentences.get())
        return sentences

    def _hangs(self, now: float) -> list[str]:
        """A sentence, once for each report that the writer does not return from."""
        since = self._busy_since
        if now - since <= HANGS_SEC or since == self._said_busy_since:
            return []
        self._said_busy_since = since
        return [
            f"{self._name} has not returned for {now - since:.0f} s. Training goes on; its reports wait, and beyond "
            f"{MOST_QUEUED} the oldest are dropped."
        ]

    def _work(self) -> None:
        try:
            self._busy_since = time.monotonic()
            write, end = self._start()
            self._busy_since = math.inf
            for report in self._queued():
                self._busy_since = time.monotonic()
                self._hand_over(write, report)
                self._busy_since = math.inf
            self._busy_since = time.monotonic()
            end()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - others' code may raise anything, sys.exit() included
            self._dropped, self._busy_since = True, math.inf
            self._sentences.put(
                f"{self._name} failed and gets no more reports, training goes on: {_what_was_raised(error)}"
            )

    def _hand_over(self, write: Write, report: CurveReport) -> None:
        for attempt in range(1, self._attempts):
            try:
                write(report)
            except Exception:  # noqa: BLE001 - others' code may raise anything
                time.sleep(attempt)
            else:
                return
        write(report)

    def _queued(self) -> Iterator[CurveReport]:
        while (report := self._reports.get()) is not None:
            yield report


def _what_was_raised(error: BaseException) -> str:
    """Type, message, and the line of the innermost frame."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {str(error)[:500]}{where}"


def callback_writer(
    name: str, function: Callable[[dict[str, Any]], object], figures: CallbackFigures
) -> BackgroundWriter:
    """`metrics_callback`: called with `CurveReport.as_dict`; `figures` gets what it returns."""

    def write(report: CurveReport) -> None:
        for words in figures.add(function(report.as_dict())):
            writer.say(f"metrics_callback {name} {words}")

    writer = BackgroundWriter(f"metrics_callback {name}", lambda: (write, lambda: None))
    return writer
