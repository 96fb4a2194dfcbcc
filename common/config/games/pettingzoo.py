"""PettingZoo in the configuration: its section, and what the rest of the system knows about it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import field

from simul.common.config.game_description import POLICIES, TABLE_PLAYER, Game, GameSection
from simul.common.config.section import ArgumentsOf, Names, NonEmptyText, PositiveFloat


class PettingZooConfig(GameSection, frozen=True):
    """Any PettingZoo environment, AEC or parallel, with discrete actions."""

    description: ClassVar[Game] = Game(
        configuration="pettingzoo", variant="id", seats=0, opponents=(*POLICIES, "random"), episodes="games",
        pairings=True, replays=True, player=TABLE_PLAYER, packages=("pettingzoo",),
        beside_play=("reward_scale",),
    )  # fmt: skip

    id: Annotated[NonEmptyText, Names.CODE] = "classic.tictactoe_v3"  # FAMILY.NAME_vN, or module:function of your own
    kwargs: Annotated[dict[str, Any], ArgumentsOf("pettingzoo.id")] = field(default_factory=dict)
    reward_scale: PositiveFloat = 1.0  # of the rewards that are learned from

    def returns_problem(self) -> str:
        return "" if self.reward_scale == 1.0 else f"pettingzoo.reward_scale is {self.reward_scale:g}"
