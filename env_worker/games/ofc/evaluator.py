"""What a row is worth: values that compare across rows of three and five cards, royalties, fouls, points.

A value is category << 20, then five nibbles of ranks (2 ... 14 = ace) in order of weight, 0 where there is no card.
So a row of three cards loses to one of five cards with the same leading ranks, as two kings and an ace do to two kings,
an ace and two more cards. A row of three counts high card, pair and three of a kind only.

A joker is any card that is not in its row, chosen so that the row's value is greatest; a foul is judged by that value.
There is no five of a kind.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled
from simul.env_worker.games.ofc.cards import JOKER

HIGH_CARD, PAIR, TWO_PAIRS, TRIPS, STRAIGHT, FLUSH, FULL_HOUSE, QUADS, STRAIGHT_FLUSH = range(9)
CATEGORIES = (
    "high card", "pair", "two pairs", "three of a kind", "straight", "flush", "full house", "quads", "straight flush",
)  # fmt: skip
TOP, MIDDLE, BOTTOM = range(3)
ROWS = ("top", "middle", "bottom")
SIZES = (3, 5, 5)  # cards of each row
STARTS = (0, 3, 8)  # of each row in a board of 13 cells
CELLS = 13
FOUL = 6  # points that a fouled hand pays each opponent, beside the opponent's royalties
SCOOP = 3  # points for winning all three rows, beside the rows
CATEGORY = 20  # bits below it
_ACE, _KING = 12, 11
_HIGHEST = np.array([max(bits.bit_length() - 1, 0) for bits in range(1 << 13)], np.int8)
_FIVE_CARD_ROYALTIES = np.array([0, 0, 0, 0, 2, 4, 6, 10, 15], np.int64)  # of the bottom, by category
_ROYAL = 25


@compiled()
def _highest(bits: int) -> int:
    return int(_HIGHEST[bits])


@compiled()
def _kickers(bits: int, shift: int, count: int) -> int:
    """The `count` highest ranks of `bits` as nibbles, the first at `shift`."""
    value = 0
    while bits and count > 0:
        rank = int(_HIGHEST[bits])
        value |= (rank + 2) << shift
        bits ^= 1 << rank
        shift -= 4
        count -= 1
    return value


@compiled()
def _straight_top(ranks: int, missing: int) -> int:
    """Highest rank of the best straight that holds all of `ranks` and lacks `missing` of them; -1: there is none."""
    for top in range(_ACE, 2, -1):
        window = (0b11111 << (top - 4)) if top > 3 else 0b1000000001111
        if ranks & ~window == 0:
            absent = window & ~ranks
            count = 0
            while absent:
                absent &= absent - 1
                count += 1
            if count == missing:
                return top
    return -1


@compiled()
def _same_ranks_value(one: int, two: int, three: int, four: int) -> int:
    """Value by equal ranks: bits of the ranks held at least once, twice, three and four times."""
    if four:
        rank = _highest(four)
        return (QUADS << CATEGORY) | ((rank + 2) << 16) | _kickers(one & ~four, 12, 1)
    if three:
        rank = _highest(three)
        pair = two & ~three
        if pair:
            return (FULL_HOUSE << CATEGORY) | ((rank + 2) << 16) | ((_highest(pair) + 2) << 12)
        return (TRIPS << CATEGORY) | ((rank + 2) << 16) | _kickers(one & ~three, 12, 2)
    if two:
        if two & (two - 1):
            return (TWO_PAIRS << CATEGORY) | _kickers(two, 16, 2) | _kickers(one & ~two, 8, 1)
        return (PAIR << CATEGORY) | _kickers(two, 16, 1) | _kickers(one & ~two, 12, 3)
    return _kickers(one, 16, 5)


@compiled()
def row_value(cards: NDArray[np.int8], start: int, count: int) -> int:
    """Value of `cards[start : start + count]`, int8. Five may be a straight or a flush; fewer count equal ranks."""
    one = two = three = four = jokers = 0
    suit = -1
    suited = True
    for place in range(start, start + count):
        card = int(cards[place])
        if card >= JOKER:
            jokers += 1
            continue
        bit = 1 << (card >> 2)
        four |= three & bit
        three |= two & bit
        two |= one & bit
        one |= bit
        if suit >= 0 and suit != card & 3:
            suited = False
        suit = card & 3
    best = 0
    if count == 5 and two == 0:
        top = _straight_top(one, jokers)
        if top >= 0:
            best = ((STRAIGHT_FLUSH if suited else STRAIGHT) << CATEGORY) | ((top + 2) << 16)
        if suited and best < (STRAIGHT_FLUSH << CATEGORY):
            held = one
            for _ in range(jokers):
                held |= 1 << _highest(0x1FFF & ~held)
            best = (FLUSH << CATEGORY) | _kickers(held, 16, 5)
    for _ in range(jokers):  # each makes the best rank one longer; one that cannot is the highest kicker
        if four:
            one |= 1 << (_KING if four >> _ACE else _ACE)
        elif three:
            four |= three
        elif two:
            three |= 1 << _highest(two)
        elif one:
            two |= 1 << _highest(one)
        else:
            one |= 1 << _ACE
    return max(best, _same_ranks_value(one, two, three, four))


@compiled()
def category(value: int) -> int:
    """HIGH_CARD ... STRAIGHT_FLUSH of a value."""
    return value >> CATEGORY


@compiled()
def royalty(row: int, value: int) -> int:
    """Royalty of a complete row, TOP, MIDDLE or BOTTOM, with this value."""
    kind, rank = value >> CATEGORY, (value >> 16) & 15
    if row == TOP:
        if kind == TRIPS:
            return rank + 8
        return max(rank - 5, 0) if kind == PAIR else 0
    points = int(_FIVE_CARD_ROYALTIES[kind])
    if kind == STRAIGHT_FLUSH and rank == _ACE + 2:
        points = _ROYAL
    if row == BOTTOM:
        return points
    return 2 if kind == TRIPS else 2 * points


@compiled()
def board_values(board: NDArray[np.int8], values: NDArray[np.int64]) -> bool:
    """Write the values [3] of a complete board, int8 [13]; True if it is legal."""
    values[TOP] = row_value(board, 0, 3)
    values[MIDDLE] = row_value(board, 3, 5)
    values[BOTTOM] = row_value(board, 8, 5)
    return values[BOTTOM] >= values[MIDDLE] >= values[TOP]


@compiled()
def royalties(values: NDArray[np.int64]) -> int:
    """Of a legal board with these row values [3]."""
    return royalty(TOP, values[TOP]) + royalty(MIDDLE, values[MIDDLE]) + royalty(BOTTOM, values[BOTTOM])


@compiled()
def pair_points(mine: NDArray[np.int64], my_board_legal: bool, other: NDArray[np.int64], other_legal: bool) -> int:
    """Points that the first of two seats, values [3] each, wins from the second."""
    if not my_board_legal:
        return -(FOUL + royalties(other)) if other_legal else 0
    if not other_legal:
        return FOUL + royalties(mine)
    rows = 0
    for row in range(3):
        rows += (mine[row] > other[row]) - (mine[row] < other[row])
    if abs(rows) == 3:
        rows += SCOOP if rows > 0 else -SCOOP
    return rows + royalties(mine) - royalties(other)
