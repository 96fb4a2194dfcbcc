"""Best-first minimax search (Korf and Chickering 1996) with the evaluation of `evaluation.py`.

The position at the end of the line that is best for all is looked at next: all its actions are evaluated, and the
values of the line are set again. So lines that hold grow deep, and an action is answered before it is believed.
Compiled when it is first called, as the evaluation is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled
from simul.env_worker.games.blokus.board import PASS
from simul.env_worker.games.blokus.evaluation import evaluate
from simul.env_worker.games.blokus.kernels import OVER, TO_MOVE, draw_below, find_moves, play, seat_of

Numbers = NDArray[Any]

# Columns of the nodes. The children of a node that was expanded are those from FIRST to before LAST.
PARENT, ACTION, FIRST, LAST, SIGN = range(5)  # SIGN: 1 where the seat that searches acts, -1 where another does


@compiled(nogil=True)
def best_child(nodes: Numbers, values: Numbers, at: int) -> int:
    """The child that is best for the seat that acts, of equals the first."""
    best = nodes[at, FIRST]
    for child in range(best + 1, nodes[at, LAST]):
        if nodes[at, SIGN] * (values[child] - values[best]) > 0:
            best = child
    return best


@compiled(nogil=True)
def _best_answered(nodes: Numbers, values: Numbers) -> int:
    """The root's child of the best value among those that were expanded; where none was, of all."""
    best = -1
    for child in range(nodes[0, FIRST], nodes[0, LAST]):
        if nodes[child, LAST] and (best < 0 or values[child] > values[best]):
            best = child
    return best if best >= 0 else best_child(nodes, values, 0)


@compiled(nogil=True)
def _actions(state: Numbers, tree: Numbers, rules: Numbers, moves: Numbers) -> int:
    """Write the actions of the colour to move to `moves`, the pass where it has no other; returns how many."""
    found = find_moves(state, state[TO_MOVE], tree, rules, moves, len(moves))
    if found == 0:
        moves[0] = rules[PASS]
    return max(found, 1)


@compiled(nogil=True)
def _copy(state: Numbers, copied: Numbers) -> None:
    """Cell by cell: of `copied[:] = state`, numba also compiles the sentence for arrays of other lengths, for long."""
    for cell in range(len(state)):
        copied[cell] = state[cell]


@compiled(nogil=True)
def search_best_first(
    root: Numbers,
    positions: int,
    tree: Numbers,
    placements: Numbers,
    views: Numbers,
    rules: Numbers,
    random: NDArray[np.uint64],
) -> int:
    """The action that is best after at most `positions` evaluations, at least those of the root's actions.

    All other seats are taken to play against the one that acts (paranoid search, Sturtevant and Korf 2000). Equal
    actions are drawn from `random` uint64 [1].
    """
    seat = seat_of(root, root[TO_MOVE], rules)
    moves = np.empty(rules[PASS], np.int32)
    state, after = np.empty_like(root), np.empty_like(root)
    found = _actions(root, tree, rules, moves)
    if found == 1:
        return moves[0]
    for index in range(found - 1):
        other = index + draw_below(random, found - index)
        moves[index], moves[other] = moves[other], moves[index]
    nodes = np.zeros((1 + max(positions, found), 5), np.int32)
    values = np.empty(len(nodes))
    nodes[0, PARENT] = -1
    used, at = 1, 0
    _copy(root, state)
    while used + found <= len(nodes):
        nodes[at, FIRST], nodes[at, LAST] = used, used + found
        nodes[at, SIGN] = 1 if seat_of(state, state[TO_MOVE], rules) == seat else -1
        for child in range(used, used + found):
            _copy(state, after)
            nodes[child, PARENT], nodes[child, ACTION] = at, moves[child - used]
            play(after, nodes[child, ACTION], tree, placements, views, rules)
            values[child] = evaluate(after, seat, tree, rules)
        used += found
        while at >= 0:
            values[at] = values[best_child(nodes, values, at)]
            at = nodes[at, PARENT]
        _copy(root, state)
        at = 0
        while nodes[at, LAST]:
            at = best_child(nodes, values, at)
            play(state, nodes[at, ACTION], tree, placements, views, rules)
        if state[OVER]:  # the line is played to its end: nothing that is looked at can change it
            return nodes[best_child(nodes, values, 0), ACTION]
        found = _actions(state, tree, rules, moves)
    return nodes[_best_answered(nodes, values), ACTION]
