"""The last two streets, exactly: what the best replies to every draw are worth, other boards left aside."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled
from simul.env_worker.games.ofc.actions import NUM_ACTIONS, OPENINGS
from simul.env_worker.games.ofc.cards import Cards
from simul.env_worker.games.ofc.estimates.heuristic import after, rows_worth
from simul.env_worker.games.ofc.evaluator import BOTTOM, MIDDLE, SIZES, STARTS, TOP, row_value


@compiled()
def before_last_worths(
    board: Cards, filled: Cards, held: Cards, unseen: Cards, fantasy: float, fouled: float,
    worths: NDArray[np.float64], fouls: NDArray[np.float64],
) -> None:  # fmt: skip
    """Of street 4: write the expected final worth, float64 [actions], and the chance of a foul that no reply avoids.

    Illegal actions get -inf and 1. The three cards of the last street are any of `unseen`, int8 [K], alike.
    """
    new_board, new_filled = np.empty_like(board), np.empty_like(filled)
    pairs = np.empty((len(unseen), len(unseen)), np.float64)
    worths[:] = -np.inf
    fouls[:] = 1.0
    for action in range(OPENINGS, NUM_ACTIONS):
        if not after(board, filled, held, 3, action, new_board, new_filled):
            continue
        _pair_worths(new_board, new_filled, unseen, fantasy, fouled, pairs)
        total, lost, draws = 0.0, 0, 0
        for one in range(len(unseen)):
            for two in range(one + 1, len(unseen)):
                for three in range(two + 1, len(unseen)):
                    best = max(pairs[one, two], pairs[one, three], pairs[two, three])
                    total += best
                    lost += best == -fouled
                    draws += 1
        worths[action], fouls[action] = total / draws, lost / draws


@compiled()
def free_cells(filled: Cards, cells: NDArray[np.int64]) -> bool:
    """Write the two cells, int64 [2], that a board with these row counts has left; True if they are in one row."""
    found = 0
    for row in range(3):
        for index in range(filled[row], SIZES[row]):
            cells[found] = STARTS[row] + index
            found += 1
    return (cells[0] >= 3) + (cells[0] >= 8) == (cells[1] >= 3) + (cells[1] >= 8)


@compiled()
def _pair_worths(
    board: Cards, filled: Cards, unseen: Cards, fantasy: float, fouled: float, pairs: NDArray[np.float64]
) -> None:
    """Write the upper triangle [K, K]: worth of the better placement of two cards in the two free cells."""
    cells, values = np.empty(2, np.int64), np.empty(3, np.int64)
    same_row = free_cells(filled, cells)
    for row in range(3):
        if filled[row] == SIZES[row]:
            values[row] = row_value(board, STARTS[row], SIZES[row])
    for one in range(len(unseen)):
        for two in range(one + 1, len(unseen)):
            pairs[one, two] = -np.inf
            for first, second in ((one, two), (two, one)):
                board[cells[0]], board[cells[1]] = unseen[first], unseen[second]
                for row in range(3):
                    if filled[row] < SIZES[row]:
                        values[row] = row_value(board, STARTS[row], SIZES[row])
                worth = rows_worth(values[TOP], values[MIDDLE], values[BOTTOM], fantasy, fouled)
                pairs[one, two] = max(pairs[one, two], worth)
                if same_row:
                    break
