"""The settings of the game, and what they say of Fantasyland."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simul.common.errors import ConfigError
from simul.common.runtime.compiled import compiled
from simul.env_worker.games.ofc.cards import JOKER
from simul.env_worker.games.ofc.evaluator import (
    CATEGORY,
    FULL_HOUSE,
    PAIR,
    QUADS,
    TRIPS,
)

QUEEN = 12  # nibble of a value
FANTASY_CARDS = 14
StayRule = Literal["trips_or_quads", "full_house_too"]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Settings of a table.

    Attributes:
        players: 2 or 3.
        hands: regular hands of an episode. The Fantasyland hands that follow a hand belong to the episode and are not
            counted, so what Fantasyland is worth lies within the episode that earned it.
        fantasyland: False: there is none.
        stay: a seat in Fantasyland stays with three of a kind on top or quads or better in the bottom;
            `full_house_too`: also with a full house or better in the middle.
        progressive: Fantasyland deals 14 cards for a pair of queens, 15 for kings, 16 for aces, 17 for three of a kind;
            a seat that stays gets 14. False: always 14.
        jokers: in the deck, 0 to 2.
        button: of the first hand: `random`, drawn from the game's seed, or `last`, the last seat. It moves to the next
            seat before each regular hand and stays for hands with a seat in Fantasyland.
        stay_value: points that staying counts where a hand in Fantasyland is set.
        foul_cost: points that a fouled hand costs its seat beside the score, in what is learned from only, where
            training begins; final_foul_cost: where it ends, and at play.

    Raises:
        ConfigError: a value is out of range.
    """

    players: int = 3
    hands: int = 1
    fantasyland: bool = True
    stay: StayRule = "trips_or_quads"
    progressive: bool = False
    jokers: int = 0
    button: Literal["random", "last"] = "random"
    stay_value: float = 10.0
    foul_cost: float = 0.0
    final_foul_cost: float = 0.0

    def __post_init__(self) -> None:
        if self.players not in (2, 3):
            raise ConfigError(f"Open Face Chinese has 2 or 3 players, not {self.players}: 17 cards are dealt to each.")
        if self.jokers not in (0, 1, 2):
            raise ConfigError(f"Open Face Chinese is played with 0, 1 or 2 jokers, not {self.jokers}.")
        if self.hands < 1:
            raise ConfigError(f"An episode has at least 1 hand, not {self.hands}.")
        if not self.stay_value >= 0:
            raise ConfigError(f"stay_value is in points and not negative; it is {self.stay_value}.")
        for name in ("foul_cost", "final_foul_cost"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} is in points and not negative; it is {getattr(self, name)}.")

    @property
    def deck(self) -> int:
        """Cards in the deck."""
        return JOKER + self.jokers

    @property
    def full_house_stays(self) -> bool:
        """The wider of the two stay rules."""
        return self.stay == "full_house_too"


@compiled()
def entry_cards(top: int, progressive: bool) -> int:
    """Cards in Fantasyland that a legal board with this value on top earns; 0: it earns none."""
    kind, rank = top >> CATEGORY, (top >> 16) & 15
    if kind != TRIPS and (kind != PAIR or rank < QUEEN):
        return 0
    if not progressive:
        return FANTASY_CARDS
    return 17 if kind == TRIPS else FANTASY_CARDS + rank - QUEEN


@compiled()
def stays(top: int, middle: int, bottom: int, full_house_stays: bool) -> bool:
    """True if a legal board with these row values, set in Fantasyland, stays there."""
    if top >> CATEGORY == TRIPS or bottom >> CATEGORY >= QUADS:
        return True
    return full_house_stays and middle >> CATEGORY >= FULL_HOUSE
