"""Scripted players of any game, and how a game names its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from simul.env_worker.games.base.turn_game import Player, TurnGame

PlayerFactory = Callable[[], Player]
Players = Mapping[str, PlayerFactory]  # by kind, as the game's description names its scripted opponents


class RandomPlayer:
    """Any legal action, each as probable as the others."""

    def choose(self, game: TurnGame, seat: int, draw: random.Random) -> int:
        """One of `game.legal_actions(seat)`."""
        legal = game.legal_actions(seat)
        return int(legal[draw.randrange(len(legal))])


ANY_GAME: Players = {"random": RandomPlayer}  # players that need not know the game
