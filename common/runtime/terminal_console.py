"""The console that every printer of text of others uses."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.segment import Segment

from simul.common.runtime.terminal_text import printable


class SafeConsole(Console):
    """rich's Console, whose own colours and cursor moves work, and those within the text it is given do not."""

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        return super()._render_buffer(
            segment if segment.control else segment._replace(text=printable(segment.text, keep="\n"))
            for segment in buffer
        )
