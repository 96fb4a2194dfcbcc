"""A quick estimate of what an unfinished board will be worth, and the placement that it likes best.

The estimate weighs, in points, the royalties made and drawn to, Fantasyland, the rows' strength, and the risk that the
rows end in the wrong order. Chances of a draw are Poisson tails over the cards that are still to come. `WEIGHTS` were
tuned by random search over own hands; the estimate ignores the other boards but for the cards seen there.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled
from simul.env_worker.games.ofc.actions import DISCARD, NUM_ACTIONS, OPENINGS, PLACEMENTS
from simul.env_worker.games.ofc.cards import JOKER, Cards
from simul.env_worker.games.ofc.evaluator import (
    BOTTOM,
    CATEGORY,
    FLUSH,
    FULL_HOUSE,
    MIDDLE,
    PAIR,
    STRAIGHT,
    TOP,
    TRIPS,
    TWO_PAIRS,
    row_value,
    royalty,
)
from simul.env_worker.games.ofc.hand import STREET_CARDS, STREETS, copy_board
from simul.env_worker.games.ofc.rules import QUEEN, entry_cards

Weights = NDArray[np.float64]
ROW_POINTS = 0.5  # of a category, in complete boards

# points of Fantasyland, against each opponent, and of a foul; the same two where they are only likely; of a category in
# top, middle, bottom; growth in categories of each free cell of these rows; bias, width and width for each free cell of
# the order bottom-middle, then of middle-top; share of the chances of draws that come true, for flushes and straights,
# then for full houses, then for pairs on top
FANTASY, FOULED, LIKELY_FANTASY, LIKELY_FOUL = range(4)
WORTH, GROWTH = 4, 7  # + row
LOWER_PAIR, UPPER_PAIR = 10, 13  # + 0 bias, 1 width, 2 width for each free cell
DRAWN, FILLED_UP, PAIRED = 16, 17, 18
WEIGHTS: Weights = np.array([
    8.0, 12.0, 1.783, 34.731, 0.13, 0.21, 3.034, 0.241, 0.158, -0.047, 0.069, 0.252, 0.307, -0.19, 0.058, 0.216, 0.521,
    0.532, 0.171,
])  # fmt: skip


@compiled()
def chance(outs: float, needed: int, unseen: int, to_come: int) -> float:
    """That at least `needed` of the `outs` among `unseen` cards are among the `to_come`; Poisson."""
    if needed <= 0:
        return 1.0
    expected = outs * to_come / max(unseen, 1)
    term = exp(-expected)
    below = term
    for hits in range(1, needed):
        term *= expected / hits
        below += term
    return 1.0 - below


@compiled()
def count_live(unseen: Cards, live: NDArray[np.int64]) -> None:
    """Write int64 [18]: unseen cards of each rank, each suit, and jokers."""
    live[:] = 0
    for card in unseen:
        if card >= JOKER:
            live[17] += 1
        else:
            live[card >> 2] += 1
            live[13 + (card & 3)] += 1


@compiled()
def _drawn(
    board: Cards, start: int, count: int, live: NDArray[np.int64], unseen: int, to_come: int
) -> tuple[float, float]:
    """Chances that a row of five with room becomes a flush, a straight."""
    suit, ranks = -1, 0
    suited = distinct = True
    for cell in range(start, start + count):
        card = int(board[cell])
        if card >= JOKER:
            continue
        bit = 1 << (card >> 2)
        distinct = distinct and ranks & bit == 0
        suited = suited and (suit < 0 or suit == card & 3)
        ranks |= bit
        suit = card & 3
    flush = straight = 0.0
    if suited and suit >= 0:
        flush = chance(live[13 + suit] + live[17], 5 - count, unseen, to_come)
    if distinct and count >= 3:
        for top in range(12, 2, -1):
            window = (0b11111 << (top - 4)) if top > 3 else 0b1000000001111
            if ranks & ~window:
                continue
            both = 1.0
            for rank in range(13):
                if window >> rank & 1 and not ranks >> rank & 1:
                    both *= chance(live[rank] + live[17], 1, unseen, to_come)
            straight = max(straight, both)
    return flush, straight


@compiled()
def _row_of_five(
    board: Cards, row: int, count: int, live: NDArray[np.int64], unseen: int, to_come: int, weights: Weights
) -> tuple[float, float]:
    """Expected strength, in categories, and expected royalty of the middle or the bottom."""
    start = 5 * row - 2
    value = row_value(board, start, count)
    strength, points = (value >> 12) / 256.0, float(royalty(row, value))
    free = 5 - count
    if free == 0:
        return strength, points
    kind, drawn = value >> CATEGORY, weights[DRAWN]
    double = 2 if row == MIDDLE else 1
    if count > 0 and kind <= PAIR:
        flush, straight = _drawn(board, start, count, live, unseen, to_come)
        if flush > straight:
            chances, made, prize = flush * drawn, FLUSH + 0.7, 4 * double
        else:
            chances, made, prize = straight * drawn, STRAIGHT + 0.5, 2 * double
        strength += chances * (made - strength)
        points += chances * prize
    elif kind in (TRIPS, TWO_PAIRS):
        outs = 4.0 if kind == TWO_PAIRS else 3.0 * (free + 1)
        chances = weights[FILLED_UP] * chance(outs, 1, unseen, to_come)
        strength += chances * (FULL_HOUSE - kind)
        points += chances * (6 * double - points)
    return strength + weights[GROWTH + row] * free * (1.0 if kind < TRIPS else 0.3), points


@compiled()
def _order_holds(lower: float, upper: float, free: int, pair: int, weights: Weights) -> float:
    """Chance that the upper of two rows does not end above the lower one, from their strengths and free cells."""
    if free == 0:
        return 1.0 if lower >= upper else 0.0
    gap = upper - lower + weights[pair]
    return 1.0 / (1.0 + exp(gap / (weights[pair + 1] + weights[pair + 2] * free)))


@compiled()
def final_worth(board: Cards, fantasy: float, fouled: float) -> float:
    """Of a complete board: royalties, what entering Fantasyland is worth, and the rows' strength; or minus a foul."""
    return rows_worth(row_value(board, 0, 3), row_value(board, 3, 5), row_value(board, 8, 5), fantasy, fouled)


@compiled()
def rows_worth(top: int, middle: int, bottom: int, fantasy: float, fouled: float) -> float:
    """The same, from the values of the three rows."""
    if not bottom >= middle >= top:
        return -fouled
    points = royalty(TOP, top) + royalty(MIDDLE, middle) + royalty(BOTTOM, bottom)
    strength = ((top >> 12) + (middle >> 12) + (bottom >> 12)) / 256.0
    return points + fantasy * (entry_cards(top, False) > 0) + ROW_POINTS * strength


@compiled()
def _top_prospects(
    board: Cards, count: int, value: int, live: NDArray[np.int64], unseen: int, to_come: int, drawn: float
) -> tuple[float, float]:
    """Expected royalty of the top, and the chance that it enters Fantasyland; fouls left aside."""
    points = float(royalty(TOP, value))
    if value >> CATEGORY >= PAIR:
        return points, 1.0 if entry_cards(value, False) else 0.0
    fantasy = 0.0
    for cell in range(count if count < 3 else 0):
        card = int(board[cell])
        rank = min(card >> 2, 12)
        if rank + 2 >= QUEEN:
            outs = live[rank] + live[17]
            if card >= JOKER:
                outs += live[rank - 1] + live[rank - 2]
            pairing = drawn * chance(outs, 1, unseen, to_come)
            fantasy = max(fantasy, pairing)
            points = max(points, pairing * (rank - 3))
    return points, fantasy


@compiled()
def estimate(
    board: Cards, filled: Cards, live: NDArray[np.int64], unseen: int, streets_left: int, weights: Weights
) -> float:
    """Points that the seat of this board, int8 [13], may expect."""
    if streets_left == 0:
        return final_worth(board, weights[FANTASY], weights[FOULED])
    to_come = STREET_CARDS * streets_left
    low, low_points = _row_of_five(board, BOTTOM, filled[BOTTOM], live, unseen, to_come, weights)
    mid, mid_points = _row_of_five(board, MIDDLE, filled[MIDDLE], live, unseen, to_come, weights)
    top = row_value(board, 0, filled[TOP])
    high = (top >> 12) / 256.0
    top_points, fantasy = _top_prospects(board, filled[TOP], top, live, unseen, to_come, weights[PAIRED])
    low_free, mid_free, high_free = 5 - filled[BOTTOM], 5 - filled[MIDDLE], 3 - filled[TOP]
    safe = _order_holds(low, mid, low_free + mid_free, LOWER_PAIR, weights)
    safe *= _order_holds(mid, high + weights[GROWTH] * high_free, mid_free + high_free, UPPER_PAIR, weights)
    rows = weights[WORTH + BOTTOM] * low + weights[WORTH + MIDDLE] * mid + weights[WORTH + TOP] * high
    won = low_points + mid_points + top_points + weights[LIKELY_FANTASY] * fantasy + rows
    return safe * won - (1.0 - safe) * weights[LIKELY_FOUL]


@compiled()
def after(
    board: Cards, filled: Cards, held: Cards, holding: int, action: int, new_board: Cards, new_filled: Cards
) -> bool:
    """Write the board, int8 [13], and row counts, int8 [3], after an action; False where it does not fit."""
    copy_board(board, filled, new_board, new_filled)
    for index in range(holding):
        row = PLACEMENTS[action, index]
        if row == DISCARD:
            continue
        start, size = (0, 3) if row == TOP else (5 * row - 2, 5)
        if new_filled[row] == size:
            return False
        new_board[start + new_filled[row]] = held[index]
        new_filled[row] += 1
    return True


@compiled()
def estimates(
    board: Cards, filled: Cards, held: Cards, street: int, live: NDArray[np.int64], unseen: int, weights: Weights,
    out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Write float64 [actions]: the estimate after each action, -inf where it is illegal."""
    new_board, new_filled = np.empty_like(board), np.empty_like(filled)
    out[:] = -np.inf
    opening = street == 0
    for action in range(0 if opening else OPENINGS, OPENINGS if opening else NUM_ACTIONS):
        if after(board, filled, held, 5 if opening else 3, action, new_board, new_filled):
            out[action] = estimate(new_board, new_filled, live, unseen, STREETS - 1 - street, weights)
