"""The result of a hand whose boards are complete."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled
from simul.env_worker.games.ofc.cards import Cards
from simul.env_worker.games.ofc.evaluator import BOTTOM, MIDDLE, TOP, board_values, pair_points, royalty
from simul.env_worker.games.ofc.hand import Hand
from simul.env_worker.games.ofc.rules import FANTASY_CARDS, Rules, entry_cards, stays


@dataclass(frozen=True, eq=False)
class HandResult:
    """Of one hand.

    Attributes:
        boards: int8 [seats, 13].
        legal: bool [seats], False = fouled.
        royalties: int64 [seats, 3], top, middle, bottom; 0 where fouled.
        points: int64 [seats], sum 0.
        fantasy: bool [seats], the hand was set in Fantasyland.
        next_cards: int64 [seats], cards in Fantasyland in the next hand; 0: it plays a regular one.
    """

    boards: Cards
    legal: NDArray[np.bool_]
    royalties: NDArray[np.int64]
    points: NDArray[np.int64]
    fantasy: NDArray[np.bool_]
    next_cards: NDArray[np.int64]


def score_hand(hand: Hand, rules: Rules) -> HandResult:
    """The result of complete boards."""
    players = rules.players
    legal = np.zeros(players, np.bool_)
    royalties = np.zeros((players, 3), np.int64)
    points, next_cards = np.zeros(players, np.int64), np.zeros(players, np.int64)
    score_boards(
        hand.board, hand.fantasy, rules.progressive, rules.full_house_stays, legal, royalties, points, next_cards
    )
    if not rules.fantasyland:
        next_cards[:] = 0
    return HandResult(hand.board.copy(), legal, royalties, points, hand.fantasy.copy(), next_cards)


@compiled()
def score_boards(
    board: Cards, fantasy: NDArray[np.bool_], progressive: bool, full_house_stays: bool, legal: NDArray[np.bool_],
    royalties: NDArray[np.int64], points: NDArray[np.int64], next_cards: NDArray[np.int64],
) -> None:  # fmt: skip
    """Write the fields of a HandResult, zeros before."""
    players = board.shape[0]
    values = np.empty((players, 3), np.int64)
    for seat in range(players):
        legal[seat] = board_values(board[seat], values[seat])
        if not legal[seat]:
            continue
        top, middle, bottom = values[seat, TOP], values[seat, MIDDLE], values[seat, BOTTOM]
        for row in range(3):
            royalties[seat, row] = royalty(row, values[seat, row])
        if not fantasy[seat]:
            next_cards[seat] = entry_cards(top, progressive)
        elif stays(top, middle, bottom, full_house_stays):
            next_cards[seat] = FANTASY_CARDS
    for seat in range(players):
        for other in range(seat):
            won = pair_points(values[seat], legal[seat], values[other], legal[other])
            points[seat] += won
            points[other] -= won
