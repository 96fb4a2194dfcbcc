"""Where a run is shown: a live panel on a terminal, plain lines elsewhere; and its event log."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live

from simul.common.runtime.private_files import open_to_append
from simul.common.runtime.terminal_console import SafeConsole
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.monitoring.view.figure_texts import run_line
from simul.launch.monitoring.view.output import standard_output
from simul.launch.monitoring.view.panel import run_panel

PLAIN_EVERY_SEC = 5.0
Draw = Callable[[Snapshot], RenderableType]
Line = Callable[[Snapshot], str]


class Display(Protocol):
    """Where a run is shown."""

    def say(self, sentence: str) -> None:
        """Show an event."""

    def update(self, snapshot: Snapshot) -> None:
        """Show new figures; called about once a second."""

    def close(self) -> None:
        """Restore the terminal. May be called twice; `summary` may follow."""

    def summary(self, text: str) -> None:
        """Show the summary of the run."""


class PlainDisplay:
    """One line every five seconds and one for every event."""

    def __init__(self, console: Console, line: Line) -> None:
        self._console = console
        self._line = line
        self._next = 0.0

    def say(self, sentence: str) -> None:
        """Print at once."""
        self._print(f"{time.strftime('%H:%M:%S')} {sentence}")

    def update(self, snapshot: Snapshot) -> None:
        """Print when the line is due."""
        if snapshot.phase in ("training", "serving") and time.monotonic() >= self._next:
            self._next = time.monotonic() + PLAIN_EVERY_SEC
            self._print(f"{time.strftime('%H:%M:%S')} {self._line(snapshot)}")

    def close(self) -> None:
        """Nothing to restore."""

    def summary(self, text: str) -> None:
        """Print it."""
        self._print(text)

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        self._console.file.flush()


class LiveDisplay:
    """Lines while the roles start, then a panel that redraws in place."""

    def __init__(self, console: Console, draw: Draw) -> None:
        self._console = console
        self._draw = draw
        self._live: Live | None = None

    def say(self, sentence: str) -> None:
        """Print it, unless the panel is up: it shows the last events itself."""
        if self._live is None:
            self._console.print(sentence, markup=False, highlight=False)

    def update(self, snapshot: Snapshot) -> None:
        """Redraw."""
        if snapshot.phase == "starting":
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
            self._live.start()
        self._live.update(self._draw(snapshot), refresh=True)

    def close(self) -> None:
        """Stop redrawing; the last panel stays."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def summary(self, text: str) -> None:
        """Print it below the last panel."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def make_display(plain: bool, draw: Draw = run_panel, line: Line = run_line) -> Display:
    """A live panel (`draw`) on a terminal, unless `plain`; else plain lines (`line`)."""
    console = SafeConsole(file=standard_output())
    return PlainDisplay(console, line) if plain or not console.is_terminal else LiveDisplay(console, draw)


EVENT_LOG = "simul-supervisor.log"


class EventLogDisplay:
    """Appends every event to a file, logs/simul-supervisor.log, and passes all calls on to another display.

    Events are deaths, restarts, a resumed checkpoint, a simulator host that hung. Figures are not written. Where the
    file cannot be written the run continues without it, and the view says so once.
    """

    def __init__(self, display: Display, path: Path) -> None:
        self._display = display
        self._path = path
        self._fault_said = False

    def say(self, sentence: str) -> None:
        """Write and show it."""
        stamp = datetime.now().isoformat(" ", "milliseconds").replace(".", ",")  # as in the roles' logs
        try:
            with os.fdopen(open_to_append(self._path), "a", encoding="utf-8") as file:
                file.write(f"{stamp} simul-supervisor {sentence}\n")
        except FileNotFoundError:  # before a start has made the folder
            pass
        except OSError as error:
            if not self._fault_said:
                self._fault_said = True
                self._display.say(f"the log {self._path} cannot be written: {error.strerror}")
        self._display.say(sentence)

    def update(self, snapshot: Snapshot) -> None:
        """Show it."""
        self._display.update(snapshot)

    def close(self) -> None:
        """Close the view."""
        self._display.close()

    def summary(self, text: str) -> None:
        """Show it; it is not written, summary.json holds it."""
        self._display.summary(text)
