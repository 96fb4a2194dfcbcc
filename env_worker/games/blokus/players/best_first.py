"""Best-first minimax with what players of Blokus count as its evaluation."""

from __future__ import annotations

import random

import numpy as np

from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.games.blokus.best_first_search import search_best_first
from simul.env_worker.games.blokus.turn_game import Blokus

POSITIONS = {1: 0, 2: 2_000, 3: 30_000}  # strength -> evaluated for an action, at least those that it can lead to


class BestFirstPlayer:
    """The action of `best_first_search.search_best_first`; without positions, that which leads to the best one."""

    def __init__(self, strength: int) -> None:
        """`strength`: a key of POSITIONS."""
        self._positions = POSITIONS[strength]

    def choose(self, game: TurnGame, seat: int, draw: random.Random) -> int:
        """One of `game.legal_actions(seat)`."""
        assert isinstance(game, Blokus)
        random_state = np.array([draw.getrandbits(64)], np.uint64)
        return int(search_best_first(game.state, self._positions, *game.tables, random_state))
