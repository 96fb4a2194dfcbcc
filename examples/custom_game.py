"""A game of your own with several seats: any subclass of simul.TurnGame. Here tic-tac-toe, learned against itself.

    game: examples.custom_game:TicTacToe     # module:Class, from the folder you start in

`simul up my.yaml` checks the game against its spec, then trains on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

import simul

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


class TicTacToe(simul.TurnGame):
    """Two seats take squares in turn; three in a line win 1 from the other."""

    spec = simul.GameSpec("tic-tac-toe", observation_size=18, num_actions=9, seats=2)

    def reset(self, seed: int) -> None:
        """An empty board. `seed` would determine what the game draws."""
        self.owner = [-1] * 9  # seat that took each square
        self.turn = 0

    def acting(self) -> Sequence[int]:
        """The seat to move; none when the game is over."""
        return () if self.winner() >= 0 or -1 not in self.owner else (self.turn,)

    def observation(self, seat: int) -> NDArray[np.float32]:
        """Own squares, then the other seat's."""
        return np.array([owner == who for who in (seat, 1 - seat) for owner in self.owner], np.float32)

    def legal_actions(self, seat: int) -> NDArray[np.intp]:
        """The empty squares."""
        return np.flatnonzero(np.array(self.owner) == -1)

    def apply(self, actions: Mapping[int, int]) -> None:
        """Take a square; the host sends legal actions only."""
        self.owner[actions[self.turn]] = self.turn
        self.turn = 1 - self.turn

    def returns(self) -> Sequence[float]:
        """[seats], 0 until a seat has won."""
        winner = self.winner()
        return (0.0, 0.0) if winner < 0 else (1.0 - 2.0 * winner, 2.0 * winner - 1.0)

    def winner(self) -> int:
        """The seat with a line, -1 for none."""
        lines = ({self.owner[square] for square in line} for line in LINES)
        return next((owners.pop() for owners in lines if len(owners) == 1 and -1 not in owners), -1)
