"""Cards of Open Face Chinese, read from text."""

from __future__ import annotations

import numpy as np

from simul.env_worker.games.ofc.cards import JOKER, JOKER_NAME, RANKS, SUITS, Cards


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
