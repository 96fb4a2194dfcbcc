"""The console that every printer of text of others uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from simul.common.runtime.terminal_text import LINES, printable


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
