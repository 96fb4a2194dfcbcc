"""PettingZoo in the configuration: its section, and what the rest of the system knows about it."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from simul.common.config.game_description import POLICIES, TABLE_PLAYER, Game, GameSection
from simul.common.config.section import NonEmptyText, PositiveFloat


class PettingZooConfig(GameSection, frozen=True):
    """Any PettingZoo environment, AEC or parallel, with discrete actions."""

    description: ClassVar[Game] = Game(
        configuration="pettingzoo", variant="id", seats=0, opponents=(*POLICIES, "random"), episodes="games",
        pairings=True, replays=True, player=TABLE_PLAYER, packages=("pettingzoo",),
    )  # fmt: skip

    id: NonEmptyText = "classic.tictactoe_v3"  # FAMILY.NAME_vN of pettingzoo, or module:function of your own
    kwargs: dict[str, Any] = field(default_factory=dict)  # keyword arguments of the environment
    reward_scale: PositiveFloat = 1.0  # of the rewards that are learned from
