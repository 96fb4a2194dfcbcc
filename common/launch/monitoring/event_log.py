"""What a view said, kept for afterwards: logs/simul-supervisor.log."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from simul.common.launch.monitoring.snapshot import Snapshot
from simul.common.launch.monitoring.view import Display

FILE = "simul-supervisor.log"


class Diary:
    """A display that writes down what happens, line by line, and passes everything on to another one.

    Deaths, restarts, `Resumed`, a simulator host that hung: who comes later finds them. Figures are not written.
    Where the file cannot be written the run goes on without it.
    """

    def __init__(self, display: Display, path: Path) -> None:
        self._display = display
        self._path = path

    def say(self, sentence: str) -> None:
        """Write it, and say it."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        with contextlib.suppress(OSError), self._path.open("a", encoding="utf-8") as file:
            file.write(f"{stamp} simul-supervisor {sentence}\n")
        self._display.say(sentence)

    def update(self, snapshot: Snapshot) -> None:
        """Show it."""
        self._display.update(snapshot)

    def close(self) -> None:
        """Close the view."""
        self._display.close()

    def summary(self, text: str) -> None:
        """Show it: it stands in summary.json."""
        self._display.summary(text)
