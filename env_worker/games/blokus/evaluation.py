"""What a position is worth to a seat, from what players of the game count: points, placements, reach, corners, room.

Compiled when it is first called, for the types of that call, since it calls `kernels.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled
from simul.env_worker.games.blokus.board import COLOURS, HEADER, SEATS
from simul.env_worker.games.blokus.kernels import (
    CORNERS,
    COUNTS,
    OVER,
    PLACEMENTS,
    PLIES,
    POINTS,
    REACH,
    ROOM,
    TO_MOVE,
    count_colour,
    seat_of,
    seat_points,
)

Numbers = NDArray[Any]

TURN = COUNTS  # behind the weights of the counts: what it is worth to be the next to place

# Log-odds of a win in Duo for each more of a count (of placements: of the logarithm), before the first piece, after 7
# pieces a colour, from 14 on; linear between them. docs/blokus.md says how they were fitted.
WEIGHTS = np.array(
    [
        [0.11, 0.08, 0.0, 0.083, 0.058, 0.64],
        [0.23, 0.09, 0.0135, 0.033, 0.061, 0.83],
        [0.50, 1.10, 0.0245, -0.011, 0.045, 0.12],
    ]
)
PIECES_BETWEEN = 7
WON = 1000.0  # above all positions that are not decided


@compiled(nogil=True)
def evaluate(state: Numbers, seat: int, tree: Numbers, rules: Numbers) -> float:
    """How far `seat` is ahead of the best other seat: in log-odds; at the end of the game in points, WON away from 0.

    A colour that three players share counts for none.
    """
    seats = rules[SEATS]
    worth = np.zeros(seats)
    if state[OVER]:
        for each in range(seats):
            worth[each] = seat_points(state, each, rules)
    else:
        phase = min(state[PLIES] / (PIECES_BETWEEN * rules[COLOURS]), 1.999)
        row = int(phase)
        weights = WEIGHTS[row] + (phase - row) * (WEIGHTS[row + 1] - WEIGHTS[row])
        worth[seat_of(state, state[TO_MOVE], rules)] += weights[TURN]
        for colour in range(rules[COLOURS]):
            if colour < seats or seats != 3:
                counts = count_colour(state, colour, tree, rules, np.zeros(len(state) - HEADER, np.int64))
                worth[colour % seats] += weights[PLACEMENTS] * math.log1p(counts[PLACEMENTS])
                for index in (POINTS, REACH, CORNERS, ROOM):
                    worth[colour % seats] += weights[index] * counts[index]
    own, worth[seat] = worth[seat], -np.inf
    ahead = own - worth.max()
    return ahead + WON * np.sign(ahead) if state[OVER] else ahead
