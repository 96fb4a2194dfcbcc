"""A game of one's own that raises. A module of its own: the process that plays it imports nothing else of the tests."""

from __future__ import annotations

from collections.abc import Mapping

from examples.custom_game import TicTacToe


class Tired(TicTacToe):
    """Fails in its third turn."""

    def apply(self, actions: Mapping[int, int]) -> None:
        if self.owner.count(-1) == 7:
            raise RuntimeError("no more squares")
        super().apply(actions)
