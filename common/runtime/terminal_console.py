"""The console that every printer of text of others uses."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from simul.common.runtime.terminal_text import LINES, printable

WIDEST = 1000  # columns of a table where the output is no terminal


class SafeConsole(Console):
    """rich's Console, whose own styles work. Text is `printable` and never markup (`[red]`, `[link=...]`, `:name:`)."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """As of Console; called for the cells of a table before its columns are measured."""
        return super().render_str(printable(text, LINES), **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As of Console; called for every part of what is printed, before it is cut to its width."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text, keep="\n"), style, control)


def table_console(file: IO[str] | None = None) -> SafeConsole:
    """For tables, on `file` or standard output; wide ones are whole where that is no terminal."""
    return SafeConsole(file=file, width=None if (file or sys.stdout).isatty() else WIDEST)
