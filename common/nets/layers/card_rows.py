"""What rows of Open Face Chinese make, looked up by the cards that are in them.

A row's ranks are a multiset of at most five cards. Its code is the sum of its cards' RANK_CODES, which differs between
any two such multisets; the code of a row after a placement is the row's code plus that of the cards placed. Tables map
codes to ids and ids to figures, so a row costs two look-ups. Suits are coded likewise, in a system of base 6.

B = rows of a batch, N = ids, F = number of figures.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

# The smallest numbers in ascending order whose sums of at most five, none more than four times, differ.
RANK_CODES = (1, 5, 22, 94, 312, 992, 2422, 5624, 12522, 19998, 43258, 79415, 148432)
SUIT_CODES = (1, 6, 36, 216)
HIGH_CARD, PAIR, TWO_PAIRS, TRIPS, STRAIGHT, FLUSH, FULL_HOUSE, QUADS, STRAIGHT_FLUSH = range(9)
TOP, MIDDLE, BOTTOM = range(3)
SIZES = (3, 5, 5)
RANKS, SUITS, MOST = 13, 4, 5
ROYALTY_SCALE, RANK_SCALE = 10.0, 14.0
QUEEN = 10  # of ranks 0 ... 12
WINDOWS = tuple(0b11111 << (top - 4) if top > 3 else 0b1000000001111 for top in range(12, 2, -1))  # of straights

Array = NDArray[np.float32]
# Columns of figures that are exact: value / 2^20, royalties / 10 in each row, complete in top and in the others, and
# whether such a row on top enters Fantasyland.
VALUE, ROYALTY, COMPLETE_TOP, COMPLETE, FANTASY = 0, 1, 4, 5, 6
_CATEGORY, _LEAD, _STRAIGHT, _FILLED = 7, 13, 16, 18
_SUITED, _MASKS = 19, 23  # of the table: the first four of cards of one suit, and by rank
MASKS = 4  # held once; held twice; lacked by a straight that holds the others; queens and better held once
FIGURES = _SUITED + 3 + MASKS + 1  # with figures of the suits, and cards to come that help


def _multisets() -> NDArray[np.int64]:
    """Cards of each rank, [N, 13], of every multiset of at most five cards."""
    symbols = np.array(list(combinations_with_replacement(range(RANKS + 1), MOST)))  # 0: no card
    counts = np.stack([(symbols == rank + 1).sum(1) for rank in range(RANKS)], 1)
    return counts[counts.max(1) <= SUITS]


def _groups(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sizes and ranks (2 ... 14), [N, 5] each, of groups of equal ranks: larger groups first, then higher ranks."""
    keys = np.where(counts > 0, counts * 16 + np.arange(RANKS) + 2, 0)
    keys = -np.sort(-keys, axis=1)[:, :MOST]
    return keys >> 4, keys & 15


def _categories(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Category of each multiset by equal ranks alone."""
    first, second = sizes[:, 0], sizes[:, 1]
    by_size = [first == 4, (first == 3) & (second == 2), first == 3, (first == 2) & (second == 2), first == 2]
    return np.select(by_size, [QUADS, FULL_HOUSE, TRIPS, TWO_PAIRS, PAIR], HIGH_CARD)


def _royalties(row: int, kinds: NDArray[np.int64], lead: NDArray[np.int64]) -> NDArray[np.int64]:
    """Royalty of a row of these categories and first ranks."""
    if row == TOP:
        return np.where(kinds == TRIPS, lead + 8, np.where(kinds == PAIR, np.maximum(lead - 5, 0), 0))
    points = np.array([0, 0, 0, 0, 2, 4, 6, 10, 15])[kinds]
    points = np.where((kinds == STRAIGHT_FLUSH) & (lead == 14), 25, points)
    return points if row == BOTTOM else np.where(kinds == TRIPS, 2, 2 * points)


@cache
def rank_tables() -> tuple[NDArray[np.int32], Array]:
    """Ids by code, int32 [highest code + 1], 0 where no multiset has it, and a table, float32 [N, 23 + 4 x 13]."""
    counts = _multisets()
    held, number = counts > 0, counts.sum(1)
    sizes, ranks = _groups(counts)
    kinds = _categories(sizes)
    values = (ranks << np.array([16, 12, 8, 4, 0])).sum(1)
    bits = (held << np.arange(RANKS)).sum(1)
    fits = np.stack([bits & ~window == 0 for window in WINDOWS], 1) & (counts.max(1) <= 1)[:, None]  # (N, 10)
    straight = fits.any(1) & (number == MOST)
    high = 14 - fits.argmax(1)  # of the best straight
    kinds_suited = np.where(straight, STRAIGHT_FLUSH, np.where(number == MOST, FLUSH, kinds))
    kinds = np.where(straight, STRAIGHT, kinds)
    lead = np.where(straight, high, ranks[:, 0])
    values = np.where(straight, high << 16, values)
    in_window = (np.array(WINDOWS)[:, None] >> np.arange(RANKS) & 1).astype(bool)
    lacking = (fits.astype(np.int64) @ in_window > 0) & ~held
    table = np.zeros((len(counts), _MASKS + MASKS * RANKS), np.float32)
    for start, made in ((VALUE, kinds), (_SUITED, kinds_suited)):
        table[:, start] = (made << 20 | values) / 2**20
        for row in range(3):
            table[:, start + ROYALTY + row] = _royalties(row, made, lead) / ROYALTY_SCALE
    table[:, COMPLETE_TOP], table[:, COMPLETE] = number == SIZES[TOP], number == MOST
    table[:, FANTASY] = (kinds == TRIPS) | ((kinds == PAIR) & (lead >= QUEEN + 2))
    for column, kind in enumerate((PAIR, TWO_PAIRS, TRIPS, STRAIGHT, FULL_HOUSE, QUADS)):
        table[:, _CATEGORY + column] = kinds == kind
    table[:, _LEAD:_STRAIGHT] = ranks[:, :3] / RANK_SCALE
    table[:, _STRAIGHT], table[:, _STRAIGHT + 1] = fits.any(1) & (number < MOST), fits.sum(1) / len(WINDOWS)
    table[:, _FILLED] = number / MOST
    queens = (counts == 1) & (np.arange(RANKS) >= QUEEN)
    table[:, _MASKS:] = np.concatenate((counts == 1, counts == 2, lacking, queens), 1)
    codes = counts @ np.array(RANK_CODES)
    ids = np.zeros(codes.max() + 1, np.int32)
    ids[codes] = np.arange(len(counts))
    return ids, table


@cache
def suit_table() -> Array:
    """float32 [1296, 7] by code: all of one suit; cards / 5 if they are; five of one suit; 1 for that suit."""
    counts = np.arange(6**SUITS)[:, None] // np.array(SUIT_CODES) % 6
    number = counts.sum(1)
    suited = (counts.max(1) == number) & (number > 0)
    single = (counts > 0) & suited[:, None]
    return np.column_stack((suited, suited * number / MOST, suited & (number == MOST), single)).astype(np.float32)


class RowFigures(nn.Module):
    """Figures of what rows make, by tables."""

    ids: Tensor
    table: Tensor
    suits: Tensor

    def __init__(self) -> None:
        super().__init__()
        ids, table = rank_tables()
        self.register_buffer("ids", torch.from_numpy(ids), persistent=False)
        self.register_buffer("table", torch.from_numpy(table), persistent=False)
        self.register_buffer("suits", torch.from_numpy(suit_table()), persistent=False)

    def forward(self, rank_codes: Tensor, suit_codes: Tensor, ranks: Tensor, suits: Tensor) -> Tensor:
        """Figures of rows.

        Args:
            rank_codes, suit_codes: whole numbers, float32 [..., B]. Codes that no row has give the figures of some row.
            ranks: float32 [B, 13], cards of each rank that the seat may expect to be dealt.
            suits: float32 [B, 4], the same of each suit.

        Returns:
            float32 [..., B, FIGURES]. The columns VALUE to FANTASY are exact; of the others, some say more of the ranks
            and suits, and the last five how many cards to come help.
        """
        codes = rank_codes.clamp(0, self.ids.shape[0] - 1).long()
        found = self.table[self.ids[codes].long()]  # (..., B, 23 + 52)
        of_suits = self.suits[suit_codes.clamp(0, self.suits.shape[0] - 1).long()]  # (..., B, 7)
        plain = found[..., :COMPLETE_TOP]
        made = plain + of_suits[..., 2:3] * (found[..., _SUITED:_MASKS] - plain)
        help_by_rank = (found[..., _MASKS:].unflatten(-1, (MASKS, RANKS)) * ranks[:, None]).sum(-1)
        help_by_suit = (of_suits[..., 3:] * suits).sum(-1, keepdim=True)
        return torch.cat((made, found[..., COMPLETE_TOP:_SUITED], of_suits[..., :3], help_by_rank, help_by_suit), -1)
