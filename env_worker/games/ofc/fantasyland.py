"""How a seat in Fantasyland sets its hand: the legal board of most royalties plus the value of staying, exactly.

All rows of five cards are listed, best first. A board's worth never rises along that list, so the search over pairs
(bottom, middle) stops where even the best top below the middle could not reach what has been found. Among boards of
equal worth the largest sum of the rows' values is set, which tends to win more rows.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled
from simul.env_worker.games.ofc.cards import Cards
from simul.env_worker.games.ofc.evaluator import BOTTOM, MIDDLE, TOP, row_value, royalty
from simul.env_worker.games.ofc.rules import stays


def best_board(cards: Cards, stay_value: float, full_house_stays: bool) -> tuple[Cards, Cards]:
    """The board, int8 [13], and the discards of 13 to 17 cards, int8 [K]."""
    fives, threes = _subsets(len(cards), 5), _subsets(len(cards), 3)
    five_values, three_values = _values(cards, fives, 5), _values(cards, threes, 3)
    five_order, three_order = (np.argsort(-values, kind="stable") for values in (five_values, three_values))
    rows = _search(
        fives[five_order], five_values[five_order], threes[three_order], three_values[three_order],
        float(stay_value), full_house_stays,
    )  # fmt: skip
    places = [[index for index in range(len(cards)) if row >> index & 1] for row in rows]
    discards = [index for index in range(len(cards)) if not sum(rows) >> index & 1]
    return cards[[*places[TOP], *places[MIDDLE], *places[BOTTOM]]], cards[discards]


@cache
def _subsets(count: int, size: int) -> NDArray[np.int64]:
    """Bits of every choice of `size` out of `count` cards."""
    return np.array([sum(1 << index for index in chosen) for chosen in combinations(range(count), size)], np.int64)


@compiled()
def _values(cards: Cards, subsets: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    values = np.empty(len(subsets), np.int64)
    row = np.empty(size, np.int8)
    for number in range(len(subsets)):
        bits, place = subsets[number], 0
        for index in range(len(cards)):
            if bits >> index & 1:
                row[place] = cards[index]
                place += 1
        values[number] = row_value(row, 0, size)
    return values


@compiled()
def _search(
    fives: NDArray[np.int64], five_values: NDArray[np.int64], threes: NDArray[np.int64],
    three_values: NDArray[np.int64], stay_value: float, full_house_stays: bool,
) -> tuple[int, int, int]:  # fmt: skip
    """Bits of the rows top, middle, bottom. Rows are sorted by value, best first."""
    best, best_sum = -1.0, 0
    found = (0, 0, 0)
    first_top = _first_tops(five_values, three_values)
    for low in range(len(fives) - 1):
        bottom = five_values[low]
        for mid in range(low + 1, len(fives)):
            middle, high = five_values[mid], first_top[mid]
            if high == len(threes) or _worth(three_values[high], middle, bottom, stay_value, full_house_stays) < best:
                if mid == low + 1:
                    return found  # no worse bottom reaches the best board either
                break
            if fives[low] & fives[mid]:
                continue
            taken = fives[low] | fives[mid]
            while high < len(threes) and threes[high] & taken:
                high += 1
            if high == len(threes):
                continue
            top = three_values[high]  # the best that fits: of most royalties, and three of a kind where one fits
            worth = _worth(top, middle, bottom, stay_value, full_house_stays)
            total = bottom + middle + top
            if worth > best or (worth == best and total > best_sum):
                best, best_sum = worth, total
                found = (threes[high], fives[mid], fives[low])
    return found


@compiled()
def _first_tops(five_values: NDArray[np.int64], three_values: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each row of five the first row of three that is no better, its number; both lists are sorted."""
    first = np.empty(len(five_values), np.int64)
    high = 0
    for mid in range(len(five_values)):
        while high < len(three_values) and three_values[high] > five_values[mid]:
            high += 1
        first[mid] = high
    return first


@compiled()
def _worth(top: int, middle: int, bottom: int, stay_value: float, full_house_stays: bool) -> float:
    """Never falls where a row's value rises."""
    points = royalty(TOP, top) + royalty(MIDDLE, middle) + royalty(BOTTOM, bottom)
    return points + stay_value * stays(top, middle, bottom, full_house_stays)
