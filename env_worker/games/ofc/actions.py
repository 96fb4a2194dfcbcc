"""Action ids: 232 of street 1, then 27 of the later streets. What an id means never depends on the street.

A seat's cards are numbered from 0 in the order of `hand.sort_hand`: jokers, then high to low. Ids of street 1 list the
rows of the five cards, (card 0, ..., card 4), in lexicographic order, without the 11 assignments that put more than
three cards on top. Ids of later streets are 232 + discard * 9 + row * 3 + row: the number of the discarded card, then
the rows of the two others in order. Rows are 0 top, 1 middle, 2 bottom.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

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
