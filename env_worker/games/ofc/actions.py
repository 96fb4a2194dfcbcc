"""Action ids: 232 of street 1, then 27 of the later streets. What an id means never depends on the street.

A seat's cards are numbered from 0 in the order of `hand.sort_hand`: jokers, then high to low. Ids of street 1 list the
rows of the five cards, (card 0, ..., card 4), in lexicographic order, without the 11 assignments that put more than
three cards on top. Ids of later streets are 232 + discard * 9 + row * 3 + row: the number of the discarded card, then
the rows of the two others in order. Rows are 0 top, 1 middle, 2 bottom.
"""

from __future__ import annotations

import re
from itertools import product

import numpy as np
from numpy.typing import NDArray

from simul.env_worker.games.base.action_names import shortened
from simul.env_worker.games.ofc.cards import JOKER_NAME
from simul.env_worker.games.ofc.evaluator import ROWS, SIZES, TOP

FIRST_STREET = tuple(rows for rows in product(range(3), repeat=5) if rows.count(TOP) <= SIZES[TOP])
OPENINGS = len(FIRST_STREET)
DISCARD = 3  # instead of a row
NUM_ACTIONS = OPENINGS + 27


def _later_streets() -> list[tuple[int, int, int]]:
    moves = []
    for discard, first, second in product(range(3), repeat=3):
        rows = [first, second]
        rows.insert(discard, DISCARD)
        moves.append((rows[0], rows[1], rows[2]))
    return moves


# int8 [NUM_ACTIONS, 5]: row of each card, or DISCARD; -1 behind the third card of later streets
PLACEMENTS: NDArray[np.int8] = np.array(
    [*FIRST_STREET, *((*rows, -1, -1) for rows in _later_streets())], np.int8
)  # fmt: skip


def _legal(filled: tuple[int, ...]) -> NDArray[np.intp]:
    """Ids of the later streets that fit into a board with so many cards in its rows."""
    placed = np.stack([(PLACEMENTS[OPENINGS:] == row).sum(1) for row in range(3)], 1)
    fits = (placed + np.array(filled) <= SIZES).all(1)
    ids = OPENINGS + np.flatnonzero(fits)
    ids.flags.writeable = False
    return ids


LEGAL_FIRST: NDArray[np.intp] = np.arange(OPENINGS)
LEGAL_FIRST.flags.writeable = False
LEGAL_LATER = {filled: _legal(filled) for filled in product(*(range(size + 1) for size in SIZES))}


def _mask(ids: NDArray[np.intp]) -> NDArray[np.uint8]:
    mask = np.zeros(NUM_ACTIONS, np.uint8)
    mask[ids] = 1
    mask.flags.writeable = False
    return mask


MASK_FIRST = _mask(LEGAL_FIRST)
MASK_LATER = {filled: _mask(ids) for filled, ids in LEGAL_LATER.items()}


def name_of(action: int, cards: list[str]) -> str:
    """`top: Qs; bottom: As Ad; discard: 2c`, of cards in the order of their numbers."""
    groups: dict[int, list[str]] = {}
    for card, row in zip(cards, PLACEMENTS[action], strict=False):
        groups.setdefault(int(row), []).append(card)
    names = (*ROWS, "discard")
    return "; ".join(f"{names[row]}: {' '.join(groups[row])}" for row in sorted(groups))


NO_ROW = "x"  # a person's letter for the discard
_LETTERS = {"t": 0, "m": 1, "b": 2, NO_ROW: DISCARD}
_PART = re.compile(rf"\b({JOKER_NAME}|10[cdhs]|[2-9TJQKA][cdhs])\s*[:=]?\s*([a-z]+)", re.IGNORECASE)
_NUMBERS = {tuple(int(row) for row in rows if row >= 0): action for action, rows in enumerate(PLACEMENTS)}


def parse_placement(text: str, cards: list[str], filled: tuple[int, ...]) -> int:
    """The action of `As t, Kd b, 2c x`: each card with the first letter of its row, x for the discard.

    On streets 2 to 5 the only card that is not named is discarded.

    Args:
        cards: names of the cards that the seat holds, in the order of their numbers.
        filled: cards in each row.

    Raises:
        ValueError: a sentence says what does not fit.
    """
    rows: list[int | None] = [None] * len(cards)
    rest = _PART.sub("", text).strip(" ,;.")
    if rest or not text.strip():
        raise ValueError(f"expected cards with their rows, such as `{example(cards, filled)}`; got {shortened(text)}")
    for name, word in _PART.findall(text):
        card = _card_name(name)
        free = [place for place, held in enumerate(cards) if held == card and rows[place] is None]
        if not free:
            twice = "is named twice" if card in cards else f"is not among your cards, {' '.join(cards)}"
            raise ValueError(f"{card} {twice}")
        rows[free[0]] = _row_of(word)
    missing = [card for card, row in zip(cards, rows, strict=True) if row is None]
    opening = len(cards) > 3
    if not opening and len(missing) == 1 and DISCARD not in rows:
        rows[rows.index(None)] = DISCARD
        missing = []
    if missing:
        raise ValueError(f"write every card with its row; still without one: {' '.join(missing)}")
    if rows.count(DISCARD) != (not opening):
        raise ValueError(
            "no card is discarded on street 1" if opening else "exactly one of the three cards is discarded"
        )
    for row, (name, size) in enumerate(zip(ROWS, SIZES, strict=True)):
        if rows.count(row) + filled[row] > size:
            raise ValueError(f"the {name} has room for {size - filled[row]} more, not for {rows.count(row)}")
    return _NUMBERS[tuple(row for row in rows if row is not None)]


def example(cards: list[str], filled: tuple[int, ...]) -> str:
    """A placement of these cards, as a person may write it: the bottom is filled first."""
    free = "".join(ROWS[row][0] * (SIZES[row] - filled[row]) for row in (2, 1, 0))
    letters = free if len(cards) > 3 else free[:2] + NO_ROW
    return ", ".join(f"{card} {letter}" for card, letter in zip(cards, letters, strict=False))


def _card_name(text: str) -> str:
    if text.lower() == JOKER_NAME.lower():
        return JOKER_NAME
    return text[:-1].upper().replace("10", "T") + text[-1].lower()


def _row_of(word: str) -> int:
    """The row of a letter or a word. Raises ValueError."""
    found = _LETTERS.get(word.lower()[:1])
    names = (*ROWS, "discard")
    if word.lower() in ("out", "discard", "d"):
        return DISCARD
    if found is None or not (len(word) == 1 or names[found].startswith(word.lower())):
        raise ValueError(f"expected a row: t (top), m (middle), b (bottom) or x (discard); got {shortened(word)}")
    return found
