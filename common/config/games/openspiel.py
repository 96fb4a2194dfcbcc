"""OpenSpiel in the configuration: its section, and what the rest of the system knows about it."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from simul.common.config.game_description import POLICIES, TABLE_PLAYER, Game, GameSection
from simul.common.config.section import NonEmptyText, PositiveFloat


class OpenSpielConfig(GameSection, frozen=True):
    """Any sequential OpenSpiel game that offers a tensor for each seat."""

    description: ClassVar[Game] = Game(
        configuration="openspiel", variant="name", seats=0, opponents=(*POLICIES, "random"), episodes="games",
        pairings=True, replays=True, player=TABLE_PLAYER, search=True, packages=("open_spiel",),
        beside_play=("reward_scale",),
    )  # fmt: skip

    name: NonEmptyText = "tic_tac_toe"  # as in pyspiel.registered_names()
    parameters: dict[str, Any] = field(default_factory=dict)  # of the game, such as {players: 3}
    reward_scale: PositiveFloat = 1.0  # of the rewards that are learned from

    def returns_problem(self) -> str:
        return "" if self.reward_scale == 1.0 else f"openspiel.reward_scale is {self.reward_scale:g}"
