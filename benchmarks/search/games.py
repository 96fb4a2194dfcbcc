"""Blokus games that begin at different stages, so that a window of time sees all of them alike."""

from __future__ import annotations

import random

from simul.common.config.schema import Config
from simul.env_worker.games.base.build import turn_game_source
from simul.env_worker.games.base.players import RandomPlayer
from simul.env_worker.games.base.source import TurnGameSource
from simul.env_worker.games.blokus.board import Variant
from simul.env_worker.games.blokus.game import players, variant_of
from simul.env_worker.games.blokus.turn_game import Blokus
from simul.env_worker.games.loading import worker_seed
from simul.env_worker.source import SourceOptions

LONGEST_OPENING = 24  # random moves; a game of Duo has about 30


class BegunBlokus(Blokus):
    """Its first game since it was built begins with random moves; the games after it with the empty board.

    Args:
        opening: how many, fewer where the game would be over.
        lengths: takes the number of moves of every finished game that began with the empty board.
    """

    def __init__(self, variant: Variant, opening: int, draw: random.Random, lengths: list[int]) -> None:
        self._opening, self._draw, self._lengths = 0, draw, lengths
        self._whole = False
        super().__init__(variant)
        self._opening = opening

    def reset(self, seed: int) -> None:
        """See the class."""
        if self._whole and not self.acting():
            self._lengths.append(len(self.moves))
        super().reset(seed)
        opening, self._opening = self._opening, 0
        self._whole = opening == 0
        player = RandomPlayer()
        for _ in range(opening):
            seat = self.acting()[0]
            following = self.clone()
            following.apply({seat: player.choose(self, seat, self._draw)})
            if not following.acting():
                return
            self.apply({seat: following.moves[-1][1]})


def search_source(config: Config, index: int, lengths: list[int]) -> TurnGameSource:
    """The source of the configured search, with games at different stages; `lengths` as for BegunBlokus.

    Raises ConfigError.
    """
    draw, variant = random.Random(index), variant_of(config.blokus)

    def make() -> Blokus:
        return BegunBlokus(variant, draw.randrange(LONGEST_OPENING), draw, lengths)

    options = SourceOptions(
        index=index, envs=config.workers.envs, seed=worker_seed(config.seed, index, evaluation=False), record=True,
        greedy=False, episodes=None,
    )  # fmt: skip
    return turn_game_source(make, config, options, players(config))
