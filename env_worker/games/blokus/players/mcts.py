"""Plain Monte Carlo tree search with random rollouts."""

from __future__ import annotations

import random

import numpy as np

from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.games.blokus.kernels import search
from simul.env_worker.games.blokus.turn_game import Blokus


class MctsPlayer:
    """UCT from an empty tree for every action; see `kernels.search`."""

    def __init__(self, rollouts: int) -> None:
        """`rollouts`: games played to their ends for an action, at least 1."""
        self._rollouts = rollouts

    def choose(self, game: TurnGame, seat: int, draw: random.Random) -> int:
        """One of `game.legal_actions(seat)`."""
        assert isinstance(game, Blokus)
        random_state = np.array([draw.getrandbits(64)], np.uint64)
        return int(search(game.state, self._rollouts, *game.tables, random_state))
