"""Where a run is shown: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live

from simul.common.launch.monitoring.output import standard_output
from simul.common.launch.monitoring.panel import run_line, run_panel
from simul.common.launch.monitoring.snapshot import Snapshot

PLAIN_EVERY_SEC = 5.0
Draw = Callable[[Snapshot], RenderableType]
Line = Callable[[Snapshot], str]


class Display(Protocol):
    """What the supervisor shows itself on."""

    def say(self, sentence: str) -> None:
        """Something happened."""

    def update(self, snapshot: Snapshot) -> None:
        """New figures, about once a second."""

    def close(self) -> None:
        """No more figures; leave the terminal as it was. May be called twice."""

    def summary(self, text: str) -> None:
        """The end of the run in words."""


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
        """Nothing to put back."""

    def summary(self, text: str) -> None:
        """Print it."""
        self._print(text)

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        self._console.file.flush()


class LiveDisplay:
    """Progress lines until everything is ready, then a panel that redraws in place."""

    def __init__(self, console: Console, draw: Draw) -> None:
        self._console = console
        self._draw = draw
        self._live: Live | None = None

    def say(self, sentence: str) -> None:
        """While the panel stands, events are part of it."""
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
        """Leave the last panel standing."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def summary(self, text: str) -> None:
        """Print it below the last panel."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def make_display(plain: bool, draw: Draw = run_panel, line: Line = run_line) -> Display:
    """A live panel where there is a terminal, unless `plain`; what they show of a snapshot, `draw` and `line` say."""
    console = Console(file=standard_output())
    return PlainDisplay(console, line) if plain or not console.is_terminal else LiveDisplay(console, draw)


EVENT_LOG = "simul-supervisor.log"


class EventLogDisplay:
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
