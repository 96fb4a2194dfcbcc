"""Places the largest piece that fits."""

from __future__ import annotations

import random

from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.games.blokus.turn_game import Blokus


class LargestPiecePlayer:
    """A random one of the legal placements of most squares."""

    def choose(self, game: TurnGame, seat: int, draw: random.Random) -> int:
        """One of `game.legal_actions(seat)`."""
        assert isinstance(game, Blokus)
        legal = game.legal_actions(seat)
        sizes = game.tables.placements[legal, 1]
        largest = legal[sizes == sizes.max()]
        return int(largest[draw.randrange(len(largest))])
