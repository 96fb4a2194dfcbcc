"""What a position is worth to a seat, from what players of the game count: points, placements, reach, corners, room.

Compiled when it is first called, for the types of that call, since it calls `kernels.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled
from simul.env_worker.games.blokus.board import BELOW, COLOURS, HEADER, OFFSET, PIECE, SEATS, SIDE, SKIP
from simul.env_worker.games.blokus.kernels import (
    ATTACH,
    FORBIDDEN,
    LEFT,
    OVER,
    PLIES,
    TO_MOVE,
    colour_points,
    seat_of,
    seat_points,
)

Numbers = NDArray[Any]

# Counts of a colour. PLACEMENTS: that it has. REACH: over all squares that they cover, the size of the largest piece
# that does. CORNERS: those of them at which a piece may attach. ROOM: squares that may be its own some day: where a
# piece may attach, and what squares that are not forbidden to it join to there, by edges or corners.
POINTS, PLACEMENTS, REACH, CORNERS, ROOM = range(5)
COUNTS = 5
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
def count_colour(state: Numbers, colour: int, tree: Numbers, rules: Numbers) -> NDArray[np.int64]:
    """int64 [COUNTS]. Walks the covers of every cell at which a piece may attach, as `kernels.find_moves` does."""
    stride = rules[SIDE] + 2
    cells = state[HEADER:]
    forbidden, attach, left = FORBIDDEN << colour, ATTACH << colour, state[LEFT + colour]
    blocked, room = np.empty(len(cells), np.uint8), np.empty(len(cells), np.uint8)
    for cell in range(len(cells)):
        blocked[cell] = (cells[cell] & forbidden) != 0
        room[cell] = 1 - blocked[cell]  # 0 again once it is counted
    counts, reached = np.zeros(COUNTS, np.int64), np.zeros(len(cells), np.int64)
    counts[POINTS] = colour_points(state, colour)
    cover, behind = np.empty(5, np.int64), np.empty(5, np.int64)  # its cells; for each the row behind its extensions
    joined = np.empty(len(cells), np.int64)
    for cell in range(stride + 1, len(cells) - stride - 1):
        if blocked[cell] or not cells[cell] & attach:
            continue
        if room[cell]:
            room[cell], joined[counts[ROOM]] = 0, cell
            counts[ROOM] += 1
        at, size = 0, 0
        while at < len(tree):
            square = cell + tree[at, OFFSET]
            if blocked[square] or not tree[at, BELOW] & left:
                at = tree[at, SKIP]
                continue
            while size and behind[size - 1] <= at:
                size -= 1
            cover[size], behind[size] = square, tree[at, SKIP]
            size += 1
            if tree[at, PIECE] & left:
                counts[PLACEMENTS] += 1
                for index in range(size):
                    counts[REACH] += max(0, size - reached[cover[index]])
                    reached[cover[index]] = max(size, reached[cover[index]])
            at += 1
        blocked[cell] = 1
    for cell in range(len(cells)):
        counts[CORNERS] += reached[cell] > 0 and (cells[cell] & attach) != 0
    _join(room, joined, stride, counts)
    return counts


@compiled(nogil=True)
def _join(room: Numbers, joined: Numbers, stride: int, counts: Numbers) -> None:
    """Count the cells with `room` that touch those in `joined`, and those that touch them, and so on."""
    at = 0
    while at < counts[ROOM]:
        cell = joined[at]
        at += 1
        for middle in (cell - stride, cell, cell + stride):
            for near in range(middle - 1, middle + 2):
                if room[near]:
                    room[near], joined[counts[ROOM]] = 0, near
                    counts[ROOM] += 1


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
                counts = count_colour(state, colour, tree, rules)
                worth[colour % seats] += weights[PLACEMENTS] * math.log1p(counts[PLACEMENTS])
                for index in (POINTS, REACH, CORNERS, ROOM):
                    worth[colour % seats] += weights[index] * counts[index]
    own, worth[seat] = worth[seat], -np.inf
    ahead = own - worth.max()
    return ahead + WON * np.sign(ahead) if state[OVER] else ahead
