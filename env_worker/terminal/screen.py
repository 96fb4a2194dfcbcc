"""Where a game is shown and a person is asked: a terminal with colours, or plain lines through pipes."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Mapping
from typing import TextIO

from rich.text import Text

from simul.common.runtime.terminal_console import SafeConsole
from simul.common.runtime.terminal_text import LINES, printable
from simul.env_worker.games.base.board_text import COLOUR


class Screen:
    """Prints positions and sentences, and reads lines. Without a terminal it prints no escape codes and repeats what it
    reads, so that the output alone tells the game.

    Args:
        styles: of positions, see `TurnGame.styles`.
        input, output: default: the standard streams.
    """

    def __init__(
        self, styles: Mapping[str, str] | None = None, input: TextIO | None = None, output: TextIO | None = None
    ) -> None:
        self._styles = styles or {}
        self._input = input or sys.stdin
        self._console = SafeConsole(file=output)
        if isinstance(self._input, io.TextIOWrapper):
            self._input.reconfigure(errors="replace")
        self.interactive = self._input.isatty()

    def position(self, text: str) -> None:
        """A position, between empty lines. Of the escape sequences of a game's own, colours are shown."""
        parts = COLOUR.split(text)  # every other one is a colour
        parts[::2] = [printable(part, LINES) for part in parts[::2]]
        shown = Text.from_ansi("".join(parts))
        for pattern, style in self._styles.items():
            shown.highlight_regex(pattern, style)
        self._print(Text("\n").append_text(shown).append("\n"))

    def say(self, text: str, style: str = "") -> None:
        """A sentence, or lines."""
        self._print(Text(text, style))

    def ask(self, prompt: str) -> str:
        """The next line that the person writes. Raises EOFError at the end of the input."""
        if self.interactive and self._console.is_terminal:
            with contextlib.suppress(ImportError):  # not on Windows
                import readline  # noqa: F401 - `input` edits lines with it
            self._console.file.flush()
            return input(f"{prompt}> ")
        self._print(Text(f"{prompt}> "), end="")
        line = self._input.readline()
        self._print(Text(line.rstrip("\n")))
        if not line:
            raise EOFError
        return line

    def _print(self, text: Text, end: str = "\n") -> None:
        self._console.print(text, end=end, soft_wrap=True)
        self._console.file.flush()
