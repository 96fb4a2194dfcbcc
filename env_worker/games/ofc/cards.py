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


def parse_cards(text: str) -> Cards:
    """The cards of `As Kd 2c Jo Jo`, blanks optional. Raises ValueError for what is no card, and for doubles."""
    packed = "".join(text.split())
    names = [packed[start : start + 2] for start in range(0, len(packed), 2)]
    cards: list[int] = []
    for name in names:
        if name == JOKER_NAME:
            cards.append(JOKER + (JOKER in cards))
        elif len(name) == 2 and name[0] in RANKS and name[1] in SUITS:
            cards.append(RANKS.index(name[0]) * 4 + SUITS.index(name[1]))
        else:
            raise ValueError(f"{name!r} is no card; expected a rank of {RANKS} and a suit of {SUITS}, or {JOKER_NAME}.")
    if len(set(cards)) < len(cards):
        raise ValueError(f"{text!r} holds a card twice; a deck holds each once, and two jokers at most.")
    return np.array(cards, np.int8)


def card_names(cards: Iterable[int]) -> str:
    """Names with blanks between them."""
    return " ".join(card_name(int(card)) for card in cards)
