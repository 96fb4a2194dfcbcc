"""A game whose person sits at another program: what the screen shows as lines of JSON, and the person's lines back."""

from __future__ import annotations

import re
import sys
from typing import Any, TextIO

import msgspec

from simul.env_worker.games.base.board_text import COLOUR
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.terminal.screen import Screen

MOST_LEGAL = 20_000  # legal actions that are named; Blokus has up to some thousand


class PipedScreen(Screen):
    """One JSON object a line: `{"kind": "position", "text", "svg"}`, `{"kind": "say", "text", "style"}`, and
    `{"kind": "ask", "legal": [name, ...], "count": n}`, which waits for a line that `simul play` would understand.

    Args:
        seat: the person's: pictures show what it sees.
    """

    def __init__(self, game: TurnGame, seat: int, input: TextIO | None = None, output: TextIO | None = None) -> None:
        super().__init__(game.styles, input, output)
        self._game = game
        self._seat = seat
        self._output = output or sys.stdout
        self.interactive = False

    def position(self, text: str) -> None:
        """A position."""
        self._send(kind="position", text=re.sub(COLOUR, "", text), svg=self._game.svg(self._seat))

    def say(self, text: str, style: str = "") -> None:
        """A sentence, or lines."""
        self._send(kind="say", text=text, style=style)

    def ask(self, prompt: str) -> str:
        """The next line of the person. Raises EOFError at the end of the input."""
        game, seat = self._game, self._seat
        legal = game.legal_actions(seat).tolist() if seat in game.acting() else []
        names = [game.action_name(seat, action) for action in legal[:MOST_LEGAL]]
        self._send(kind="ask", legal=names, count=len(legal))
        line = self._input.readline()
        if not line:
            raise EOFError
        return line

    def _send(self, **fields: Any) -> None:
        self._output.write(msgspec.json.encode(fields).decode() + "\n")
        self._output.flush()
