"""What a row of an unfinished board may become, and with which chances.

A row becomes the best of its prospects that come true. Prospects are listed best first, each with the chance that the
cards it needs are among those to come, as if rows drew independently; the last one is the row as it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled
from simul.env_worker.games.ofc.cards import JOKER, Cards
from simul.env_worker.games.ofc.evaluator import (
    CATEGORY,
    FLUSH,
    FULL_HOUSE,
    HIGH_CARD,
    PAIR,
    QUADS,
    STARTS,
    STRAIGHT,
    TRIPS,
    TWO_PAIRS,
    row_value,
)

MOST_PROSPECTS = 18  # of a row
MOST_OUTS = 20  # that tables of draws tell apart
MOST_NEEDED = 5
_RANKS = 13
_OPEN_RANK = 6  # stands for that of a pair or a straight of any rank: an eight

Live = NDArray[np.int64]
Chances = NDArray[np.float64]


@compiled()
def draw_chances(unseen: int, to_come: int, taken: Chances, out: Chances) -> None:
    """Write float64 [3, MOST_OUTS + 1, MOST_NEEDED + 1]: that a row gets at least so many of so many outs.

    Exact (hypergeometric) for `to_come` of the `unseen` cards, times `taken`, float64 [3], for each card that the row
    needs: the share of its outs that a row gets, since others need them too.
    """
    hits = np.empty(MOST_NEEDED + 1)
    for outs in range(MOST_OUTS + 1):
        hits[:] = 0.0
        hits[0] = 1.0
        for drawn in range(min(to_come, unseen)):
            for count in range(MOST_NEEDED, -1, -1):
                hit = min(max(outs - count, 0) / (unseen - drawn), 1.0)
                if count < MOST_NEEDED:
                    hits[count + 1] += hits[count] * hit
                    hits[count] *= 1.0 - hit
        at_least = 0.0
        for needed in range(MOST_NEEDED, -1, -1):
            at_least += hits[needed]
            for row in range(3):
                out[row, outs, needed] = at_least * taken[row] ** needed


@compiled()
def new_pair_chance(live: Live, draws: Chances) -> float:
    """That two cards of a rank come which no card of the row has, by the row's table of draws."""
    none = 1.0
    for rank in range(_RANKS):
        none *= 1.0 - draws[live[rank], 2]
    return 1.0 - none


@compiled()
def _hit(draws: Chances, outs: int, needed: int) -> float:
    return draws[min(outs, MOST_OUTS), needed]


@compiled()
def _either(one: float, other: float) -> float:
    return 1.0 - (1.0 - one) * (1.0 - other)


@compiled()
def _value(kind: int, rank: int) -> int:
    """The least value of a category with this rank, 0 = two."""
    return (kind << CATEGORY) | ((rank + 2) << 16)


@compiled()
def _flush_chance(board: Cards, start: int, count: int, live: Live, draws: Chances) -> float:
    suit = -1
    for cell in range(start, start + count):
        card = int(board[cell])
        if card >= JOKER:
            continue
        if suit >= 0 and suit != card & 3:
            return 0.0
        suit = card & 3
    if suit >= 0:
        return _hit(draws, live[13 + suit] + live[17], 5 - count)
    none = 1.0
    for each in range(4):
        none *= 1.0 - _hit(draws, live[13 + each] + live[17], 5 - count)
    return 1.0 - none


@compiled()
def _straight_chance(ranks: int, free: int, live: Live, draws: Chances) -> float:
    """Of a row with these distinct ranks; jokers among its cards stand for the ranks that are hardest to get."""
    none, outs = 1.0, 0
    for top in range(12, 2, -1):
        window = (0b11111 << (top - 4)) if top > 3 else 0b1000000001111
        if ranks & ~window:
            continue
        absent = window & ~ranks
        missing, all_outs = 0, 0
        every, worst = 1.0, 1.0
        for rank in range(_RANKS):
            if absent >> rank & 1:
                missing += 1
                all_outs += live[rank]
                hit = _hit(draws, live[rank] + live[17], 1)
                every *= hit
                worst = min(worst, hit)
        if missing == free and free == 1:
            outs += all_outs
        elif missing == free:
            none *= 1.0 - every
        elif worst > 0:
            none *= 1.0 - every / worst
    if outs:
        none *= 1.0 - _hit(draws, outs + live[17], 1)
    return 1.0 - none


@compiled()
def five_prospects(
    board: Cards, row: int, count: int, live: Live, draws: Chances, new_pair: float, values: NDArray[np.int64],
    chances: Chances,
) -> int:  # fmt: skip
    """Write the prospects of the middle or the bottom, best first, and how likely each is the best; returns how many.

    Args:
        board: int8 [13].
        row: MIDDLE or BOTTOM, with `count` cards.
        live: int64 [18], of `count_live`.
        draws: float64 [MOST_OUTS + 1, MOST_NEEDED + 1], the row's of `draw_chances`.
        new_pair: of `new_pair_chance`.
        values: int64 [MOST_PROSPECTS]; of a prospect whose lesser ranks are open, they are 0.
        chances: float64 [MOST_PROSPECTS]; the sum of those written is 1.
    """
    start, free = STARTS[row], 5 - count
    value = row_value(board, start, count)
    if free == 0:
        values[0], chances[0] = value, 1.0
        return 1
    kind, main = value >> CATEGORY, max(((value >> 16) & 15) - 2, 0)
    ranks, distinct = 0, True
    for cell in range(start, start + count):
        card = int(board[cell])
        if card < JOKER:
            bit = 1 << (card >> 2)
            distinct = distinct and ranks & bit == 0
            ranks |= bit
    quads, full, trips, two_pairs = _equal_ranks_chances(value, count, ranks, live, draws, new_pair)
    flush = straight = 0.0
    if distinct and kind < TRIPS:
        flush = _flush_chance(board, start, count, live, draws)
        if count >= 2:
            straight = _straight_chance(ranks, free, live, draws)
    found, rest = 0, 1.0
    for made, chance in (
        (_value(QUADS, main), quads), (_value(FULL_HOUSE, main), full), (_value(FLUSH, max(main, 9)), flush),
        (_value(STRAIGHT, _OPEN_RANK + 2), straight), (_value(TRIPS, main), trips),
        (_value(TWO_PAIRS, main if kind == HIGH_CARD else max(main, _OPEN_RANK)), two_pairs),
    ):  # fmt: skip
        if chance > 0.0:
            values[found], chances[found] = made, rest * chance
            rest *= 1.0 - chance
            found += 1
    for rank in range(_RANKS - 1 if kind == HIGH_CARD else -1, -1, -1):
        chance = _hit(draws, live[rank] + live[17], 1) if ranks >> rank & 1 else 0.0
        if rank == _OPEN_RANK and free >= 2:
            chance = _either(chance, new_pair)
        if chance > 0.0:
            values[found], chances[found] = _value(PAIR, rank), rest * chance
            rest *= 1.0 - chance
            found += 1
    values[found], chances[found] = value, rest
    return found + 1


@compiled()
def _equal_ranks_chances(
    value: int, count: int, ranks: int, live: Live, draws: Chances, new_pair: float
) -> tuple[float, float, float, float]:
    """Chances of quads, a full house, three of a kind and two pairs of a row of this value that holds these ranks."""
    kind, free, wild = value >> CATEGORY, 5 - count, live[17]
    main, second = ((value >> 16) & 15) - 2, ((value >> 12) & 15) - 2
    outs = 0
    twice = 0.0  # that two cards of a kicker's rank come
    for rank in range(_RANKS):
        if ranks >> rank & 1 and (kind == HIGH_CARD or rank != main):
            outs += live[rank]
            twice = _either(twice, _hit(draws, live[rank] + wild, 2))
    kicker = _hit(draws, outs + wild, 1) if outs else 0.0
    if kind == TRIPS:
        return _hit(draws, live[main] + wild, 1), kicker if count == 4 else new_pair, 0.0, 0.0
    if kind == TWO_PAIRS:
        return 0.0, _hit(draws, live[main] + live[second] + wild, 1), 0.0, 0.0
    if kind == PAIR:
        again = _hit(draws, live[main] + wild, 1)
        if count == 4:
            return 0.0, 0.0, again, kicker
        quads = _hit(draws, live[main] + wild, 2)
        if count == 3:
            return quads, _either(again * kicker, twice), again, _either(kicker, new_pair)
        return quads, again * new_pair, again, new_pair
    if kind > PAIR or free < 2:
        return 0.0, 0.0, 0.0, 0.0
    if count == 0:
        return 0.0, 0.0, 0.0, new_pair * new_pair
    return 0.0, 0.0, twice, _hit(draws, outs + wild, 2) if free == 2 else kicker * new_pair


@compiled()
def top_prospects(
    board: Cards, count: int, live: Live, draws: Chances, values: NDArray[np.int64], chances: Chances
) -> int:
    """The same of the top; arguments as of `five_prospects`."""
    free = 3 - count
    value = row_value(board, 0, count)
    kind, main = value >> CATEGORY, ((value >> 16) & 15) - 2
    found, rest = 0, 1.0
    if free and kind == PAIR:
        chance = _hit(draws, live[main] + live[17], 1)
        values[0], chances[0] = _value(TRIPS, main), chance
        found, rest = 1, 1.0 - chance
    ranks = wild = 0
    for cell in range(count):
        card = int(board[cell])
        wild += card >= JOKER
        ranks |= 0 if card >= JOKER else 1 << (card >> 2)
    if free and wild == 1 and kind <= PAIR:  # the joker pairs with the highest card that comes
        for rank in range(_RANKS - 1, main if kind == PAIR else 0, -1):
            chance = _hit(draws, live[rank], 1)
            values[found], chances[found] = _value(PAIR, rank), rest * chance
            rest *= 1.0 - chance
            found += 1
        if kind == HIGH_CARD:
            values[found], chances[found] = _value(PAIR, 0), rest
            found, rest = found + 1, 0.0
    elif free and kind == HIGH_CARD:
        for rank in range(_RANKS - 1, -1, -1):
            if ranks >> rank & 1:
                chance = _hit(draws, live[rank] + live[17], 1)
            elif free >= 2:
                chance = _hit(draws, live[rank], 2)
            else:
                continue
            values[found], chances[found] = _value(PAIR, rank), rest * chance
            rest *= 1.0 - chance
            found += 1
    values[found], chances[found] = value, rest
    return found + 1
