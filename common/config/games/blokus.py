"""Blokus in the configuration: its section, and what the rest of the system knows about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from simul.common.config.game_description import POLICIES, TABLE_PLAYER, Game, GameSection
from simul.common.config.section import Positive, PositiveFloat, ProgramName, Rule


class BlokusConfig(GameSection, frozen=True):
    """Blokus: Duo for two players, Classic for two, three and four."""

    description: ClassVar[Game] = Game(
        configuration="blokus",
        seats=0,
        opponents=(
            *POLICIES,
            "random",
            "largest_piece",  # a random one of the largest pieces that fit
            "best_first",  # best-first search with an evaluation of reach, corners and room, in three strengths
            "mcts",  # plain Monte Carlo tree search with random rollouts
            "gtp",  # an engine that speaks GTP, such as Pentobi's
        ),
        short_names={"largest": "largest_piece"},
        episodes="games",
        variant="variant",
        pairings=True,
        replays=True,
        player=TABLE_PLAYER,
        search=True,
    )

    variant: Literal["duo", "classic"] = "duo"  # 14 x 14 and two colours, or 20 x 20 and four
    players: Literal[0, 2, 3, 4] = 0  # of Classic; 0: two in Duo, four in Classic
    mcts_rollouts: Positive = 400  # random games for each action of the opponent `mcts`
    best_first_strength: Literal[1, 2, 3] = 2  # of the opponent `best_first`: one action ahead, or by search
    gtp: ProgramName = ""  # path and arguments of the engine that the opponent `gtp` is
    gtp_timeout_sec: PositiveFloat = 60.0  # an engine that answers a command later is stopped, its game aborted

    def seats(self) -> int:
        """Players of one game."""
        return self.players or (2 if self.variant == "duo" else 4)

    def broken_rules(self) -> Iterator[Rule]:
        if self.variant == "duo" and self.players not in (0, 2):
            yield (
                ("blokus.players", "blokus.variant"),
                f"Duo is for two players, got {self.players}; leave it out, or set blokus.variant: classic",
            )
