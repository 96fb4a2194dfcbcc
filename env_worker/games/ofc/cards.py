"""Cards as numbers: rank * 4 + suit with rank 0 = two ... 12 = ace, suits c d h s; 52 and 53 are the jokers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

RANKS = "23456789TJQKA"
SUITS = "cdhs"
JOKER = 52  # this number and above
JOKER_NAME = "Jo"
DEALT = 17  # of one seat in one hand, all streets together; the most that Fantasyland deals

Cards = NDArray[np.int8]


def card_name(card: int) -> str:
    """`As`, `Td`, `Jo` for either joker."""
    return JOKER_NAME if card >= JOKER else RANKS[card >> 2] + SUITS[card & 3]


def card_names(cards: Iterable[int]) -> str:
    """Names with blanks between them."""
    return " ".join(card_name(int(card)) for card in cards)
