"""A replay as frames, for a program that shows them: the positions as text and, where the game has them, pictures."""

from __future__ import annotations

import re
import sys

import msgspec

from simul.common.runtime.terminal_text import LINES, printable
from simul.env_worker.games.base.board_text import COLOUR
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.terminal.screen import Screen

MOST_BYTES = 32 * 2**20  # of all frames
MOST_SAID = 2000  # characters at once
MEMORY_BYTES, PROCESSOR_SEC = 8 * 2**30, 100  # of a process that plays a replay of others again


def limit_process() -> None:
    """Settings of a replay may ask for a game of any size. Windows has no such limit."""
    if sys.platform != "win32":
        import resource

        for kind, most in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CPU, PROCESSOR_SEC)):
            hard = resource.getrlimit(kind)[1]
            resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


class Frame(msgspec.Struct):
    """A position and what was said after it. `svg`: empty where the game has no picture."""

    text: str
    svg: str
    said: list[str] = []


class FrameScreen(Screen):
    """In place of a terminal: keeps what it is to show. Beyond MOST_BYTES what comes is left out.

    Attributes:
        frames: in order; the first has what was said before any position.
    """

    def __init__(self, game: TurnGame) -> None:
        super().__init__(game.styles)
        self._game = game
        self._bytes = 0
        self.frames = [Frame("", "")]

    def position(self, text: str) -> None:
        """A new frame."""
        frame = Frame(re.sub(COLOUR, "", text), self._game.svg())
        self._bytes += len(frame.text) + len(frame.svg)
        if self._bytes > MOST_BYTES:
            return
        if not self.frames[0].text:
            self.frames[0] = Frame(frame.text, frame.svg, self.frames[0].said)
        else:
            self.frames.append(frame)

    def say(self, text: str, style: str = "") -> None:
        """A sentence of the last frame."""
        shown = printable(text[:MOST_SAID], LINES)
        self._bytes += len(shown)
        if self._bytes <= MOST_BYTES:
            self.frames[-1].said.append(shown)
