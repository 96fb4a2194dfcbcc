"""Gymnasium in the configuration: its section, and what the rest of the system knows about it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import field

from simul.common.config.game_description import Game, GameSection
from simul.common.config.section import ArgumentsOf, CodeName, NonNegative, Positive, PositiveFloat


class GymnasiumConfig(GameSection, frozen=True):
    """Any Gymnasium env with Discrete, MultiDiscrete or MultiBinary actions."""

    description: ClassVar[Game] = Game(
        configuration="cartpole", variant="id", replays=True, packages=("gymnasium",), in_every_fingerprint=True,
        beside_play=("reward_scale",),
    )  # fmt: skip

    id: CodeName = "CartPole-v1"  # a registered id, or module:Class
    kwargs: Annotated[dict[str, Any], ArgumentsOf("gymnasium.id")] = field(default_factory=dict)
    reward_scale: PositiveFloat = 1.0
    frame_stack: Positive = 1  # an observation is the newest so many of the env's, the oldest first
    ids: Literal["one_hot", "columns"] = "one_hot"  # Discrete observations; columns: ids, which networks embed
    max_entities: NonNegative = 0  # the most entities of a Sequence in the observation
