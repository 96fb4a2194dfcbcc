"""What an unfinished board is worth on average, in points against each opponent.

The prospects of the three rows are put together. A combination in the right order is worth its royalties, Fantasyland
and the rows' strength. One in the wrong order is a foul, but for the share of cases in which the seat leaves the upper
row as it is. `BALANCE` was tuned by random search over own hands, 11 points for Fantasyland and -3 for a foul.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled
from simul.env_worker.games.ofc.actions import NUM_ACTIONS, OPENINGS
from simul.env_worker.games.ofc.cards import Cards
from simul.env_worker.games.ofc.estimates.heuristic import ROW_POINTS, after, final_worth
from simul.env_worker.games.ofc.estimates.prospects import (
    MOST_NEEDED,
    MOST_OUTS,
    MOST_PROSPECTS,
    Chances,
    Live,
    draw_chances,
    five_prospects,
    new_pair_chance,
    top_prospects,
)
from simul.env_worker.games.ofc.evaluator import BOTTOM, MIDDLE, TOP, royalty
from simul.env_worker.games.ofc.hand import STREET_CARDS, STREETS
from simul.env_worker.games.ofc.rules import Rules, entry_cards

# points of Fantasyland, and of a foul; share of its outs that the top, the middle and the bottom gets; share of the
# middles, then of the tops, that are left as they are where what they draw to would be foul
BONUS, PENALTY, TAKEN, KEPT_MIDDLE, KEPT_TOP = 0, 1, 2, 5, 6
BALANCE: Chances = np.array([11.0, 3.6, 0.68, 0.62, 0.76, 0.71, 0.64])


def balance_of(rules: Rules) -> Chances:
    """`BALANCE`, without Fantasyland where the rules have none."""
    if rules.fantasyland:
        return BALANCE
    balance = BALANCE.copy()
    balance[BONUS] = 0.0
    return balance


@compiled()
def expected_worth(
    board: Cards, filled: Cards, live: Live, draws: Chances, new_pairs: Chances, streets_left: int, balance: Chances
) -> float:
    """Points that the seat of a board may expect; of a complete one, `heuristic.final_worth`.

    Args:
        board, filled: int8 [13] and [3], cards in each row.
        live: int64 [18], of `heuristic.count_live`.
        draws, new_pairs: of `street_tables`.
        streets_left: that the seat still plays.
        balance: float64 [7], as `BALANCE`.
    """
    if streets_left == 0:
        return final_worth(board, balance[BONUS], balance[PENALTY])
    values = np.empty((3, MOST_PROSPECTS), np.int64)
    chances, worths = np.empty((3, MOST_PROSPECTS)), np.empty((3, MOST_PROSPECTS))
    found = np.empty(3, np.int64)
    found[TOP] = top_prospects(board, filled[TOP], live, draws[TOP], values[TOP], chances[TOP])
    for row in range(MIDDLE, BOTTOM + 1):
        found[row] = five_prospects(
            board, row, filled[row], live, draws[row], new_pairs[row], values[row], chances[row]
        )  # fmt: skip
    for row in range(3):
        for number in range(found[row]):
            value = values[row, number]
            worths[row, number] = royalty(row, value) + ROW_POINTS * (value >> 12) / 256.0
            if row == TOP and entry_cards(value, False):
                worths[row, number] += balance[BONUS]
    # of each prospect of the middle: that the top stays below it, and the worth of both
    safe_tops, upper_worths = np.empty(MOST_PROSPECTS), np.empty(MOST_PROSPECTS)
    for number in range(found[MIDDLE]):
        safe_tops[number], worth = _top_below(
            values[TOP], chances[TOP], worths[TOP], found[TOP], values[MIDDLE, number], balance[KEPT_TOP]
        )
        upper_worths[number] = worth + safe_tops[number] * worths[MIDDLE, number]
    safe = total = 0.0
    as_it_is = found[MIDDLE] - 1
    for low in range(found[BOTTOM]):
        for mid in range(found[MIDDLE]):
            chance = chances[BOTTOM, low] * chances[MIDDLE, mid]
            ends = mid
            if values[MIDDLE, mid] > values[BOTTOM, low]:
                if values[MIDDLE, as_it_is] > values[BOTTOM, low]:
                    continue
                ends = as_it_is
                chance *= balance[KEPT_MIDDLE]
            safe += chance * safe_tops[ends]
            total += chance * (upper_worths[ends] + safe_tops[ends] * worths[BOTTOM, low])
    return total - (1.0 - safe) * balance[PENALTY]


@compiled()
def _top_below(
    values: NDArray[np.int64], chances: Chances, worths: Chances, found: int, middle: int, kept: float
) -> tuple[float, float]:
    """That the top ends no higher than this middle, and its worth where it does, times that chance."""
    safe = worth = 0.0
    as_it_is = found - 1
    for number in range(found):
        if values[number] <= middle:
            safe += chances[number]
            worth += chances[number] * worths[number]
        elif values[as_it_is] <= middle:
            safe += kept * chances[number]
            worth += kept * chances[number] * worths[as_it_is]
    return safe, worth


@compiled()
def street_tables(
    live: Live, unseen: int, streets_left: int, balance: Chances, draws: Chances, new_pairs: Chances
) -> None:
    """Write what `expected_worth` reads of the cards to come: `draw_chances`, and `new_pair_chance` [3] of each row."""
    draw_chances(unseen, STREET_CARDS * streets_left, balance[TAKEN : TAKEN + 3], draws)
    for row in range(3):
        new_pairs[row] = new_pair_chance(live, draws[row])


@compiled()
def expected_worths(
    board: Cards, filled: Cards, held: Cards, street: int, live: Live, unseen: int, balance: Chances,
    out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Write float64 [actions]: the expected worth after each action, -inf where it is illegal."""
    new_board, new_filled = np.empty_like(board), np.empty_like(filled)
    draws, new_pairs = np.empty((3, MOST_OUTS + 1, MOST_NEEDED + 1)), np.empty(3)
    left = STREETS - 1 - street
    if left:
        street_tables(live, unseen, left, balance, draws, new_pairs)
    out[:] = -np.inf
    opening = street == 0
    for action in range(0 if opening else OPENINGS, OPENINGS if opening else NUM_ACTIONS):
        if after(board, filled, held, 5 if opening else 3, action, new_board, new_filled):
            out[action] = expected_worth(new_board, new_filled, live, draws, new_pairs, left, balance)
