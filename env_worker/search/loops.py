"""The compiled loops of a search tree: selection, backup, improved policy.

Columns of nodes: `actor` int32 [N] (seat that acts, or below 0: chance, or over), `first` and `count` int32 [N] (its
edges), `visits` int32 [N], `value` float64 [N, seats] (mean times visits), `estimate` float64 [N, seats] (the
network's, or the exact value where `solved`), `solved` bool [N] (over, or proven by what lies below it). Columns of
edges: `prior` and `logit` float32 [E], `edge_visits` int32 [E], `edge_value` float64 [E] (mean times visits, of the one
that acts), `child` int32 [E] (-1: none yet), `closed` bool [E] (proven to be worse than another edge, or lost; not
selected).

`path_nodes` and `path_edges` int32 [N]: the nodes from the root on, and the edge that leaves each (-1 at chance).
`settings` float64: see `Setting`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")

_INTS, _FLOATS, _VALUES = types.int32[::1], types.float32[::1], types.float64[::1]
_TABLE, _BOOLS = types.float64[:, ::1], types.boolean[::1]
_INT, _FLOAT = types.int64, types.float64
LOWEST = -1e300


class Setting(IntEnum):
    """Place of each setting in `settings`."""

    EXPLORATION = 0
    EXPLORATION_BASE = 1
    FIRST_PLAY_REDUCTION = 2
    VISIT_OFFSET = 3
    VALUE_SCALE = 4


_EXPLORATION, _BASE, _REDUCTION = (
    int(Setting.EXPLORATION),
    int(Setting.EXPLORATION_BASE),
    int(Setting.FIRST_PLAY_REDUCTION),
)
_VISIT_OFFSET, _VALUE_SCALE = int(Setting.VISIT_OFFSET), int(Setting.VALUE_SCALE)


def _compiled(signature: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile for these types, once on a machine; where no cache can be written, at every start."""

    def compile_it(function: Callable[P, R]) -> Callable[P, R]:
        try:
            kept = njit(signature, cache=True, error_model="numpy")(function)
        except Exception:  # noqa: BLE001 no folder to write to, or a torn file, which may raise anything
            kept = njit(signature, error_model="numpy")(function)
        return cast(Callable[P, R], kept)

    return compile_it


@_compiled(_VALUES(_INT, _INT, _FLOAT, _FLOATS, _FLOATS, _INTS, _VALUES, _VALUES))
def improved_logits(
    first: int,
    count: int,
    estimate: float,
    prior: NDArray[np.float32],
    logit: NDArray[np.float32],
    edge_visits: NDArray[np.int32],
    edge_value: NDArray[np.float64],
    settings: NDArray[np.float64],
) -> NDArray[np.float64]:
    """logits + sigma(completed Q), float64 [count], of one node's edges (Danihelka et al. 2022, equations 8, 10, 33).

    Q is brought from [-1, 1] to [0, 1]. An action without a visit gets the mixed value of the node, whose own is
    `estimate` for the seat that acts.
    """
    most = total = 0
    visited_prior = weighted = 0.0
    for edge in range(first, first + count):
        visits = edge_visits[edge]
        if visits > 0:
            total += visits
            most = max(most, visits)
            visited_prior += prior[edge]
            weighted += prior[edge] * edge_value[edge] / visits
    mixed = estimate
    if visited_prior > 0.0:
        mixed = (estimate + total * weighted / visited_prior) / (1 + total)
    scale = (settings[_VISIT_OFFSET] + most) * settings[_VALUE_SCALE]
    logits = np.empty(count, np.float64)
    for place in range(count):
        edge = first + place
        visits = edge_visits[edge]
        q = edge_value[edge] / visits if visits > 0 else mixed
        logits[place] = logit[edge] + scale * 0.5 * (q + 1.0)
    return logits


@_compiled(_INT(_INT, _INT, _FLOAT, _FLOATS, _FLOATS, _INTS, _VALUES, _BOOLS, _VALUES))
def _improved_edge(
    first: int,
    count: int,
    estimate: float,
    prior: NDArray[np.float32],
    logit: NDArray[np.float32],
    edge_visits: NDArray[np.int32],
    edge_value: NDArray[np.float64],
    closed: NDArray[np.bool_],
    settings: NDArray[np.float64],
) -> int:
    """The open edge whose visits lag most behind the improved policy (Danihelka et al. 2022, equation 14)."""
    policy = improved_logits(first, count, estimate, prior, logit, edge_visits, edge_value, settings)
    highest = policy.max()
    mass = 0.0
    total = 0
    for place in range(count):
        policy[place] = np.exp(policy[place] - highest)
        mass += policy[place]
        total += edge_visits[first + place]
    best, best_score = first, LOWEST
    for place in range(count):
        if closed[first + place]:
            continue
        score = policy[place] / mass - edge_visits[first + place] / (1.0 + total)
        if score > best_score:
            best, best_score = first + place, score
    return best


@_compiled(_INT(_INT, _INT, _INT, _FLOAT, _FLOATS, _INT, _INTS, _VALUES, _BOOLS, _VALUES))
def _puct_edge(
    first: int,
    count: int,
    visits: int,
    node_value: float,
    prior: NDArray[np.float32],
    prior_first: int,
    edge_visits: NDArray[np.int32],
    edge_value: NDArray[np.float64],
    closed: NDArray[np.bool_],
    settings: NDArray[np.float64],
) -> int:
    """The open edge of greatest Q + U (Silver et al. 2018).

    An unvisited action's Q is `node_value` less a reduction that grows with the visited share of the priors (KataGo).
    """
    base = settings[_BASE]
    exploration = (settings[_EXPLORATION] + np.log((1.0 + visits + base) / base)) * np.sqrt(visits)
    visited_prior = 0.0
    for place in range(count):
        if edge_visits[first + place] > 0:
            visited_prior += prior[prior_first + place]
    unvisited = max(node_value - settings[_REDUCTION] * np.sqrt(visited_prior), -1.0)
    best, best_score = first, LOWEST
    for place in range(count):
        edge = first + place
        if closed[edge]:
            continue
        taken = edge_visits[edge]
        q = edge_value[edge] / taken if taken > 0 else unvisited
        score = q + exploration * prior[prior_first + place] / (1.0 + taken)
        if score > best_score:
            best, best_score = edge, score
    return best


@_compiled(
    _INT(
        _INT, _INTS, _INTS, types.boolean, _FLOATS, _INTS, _INTS, _INTS, _INTS, _TABLE, _TABLE, _BOOLS, _FLOATS,
        _FLOATS, _INTS, _VALUES, _INTS, _BOOLS, _VALUES,
    )
)  # fmt: skip
def descend(
    depth: int,
    path_nodes: NDArray[np.int32],
    path_edges: NDArray[np.int32],
    improved: bool,
    root_prior: NDArray[np.float32],
    actor: NDArray[np.int32],
    first: NDArray[np.int32],
    count: NDArray[np.int32],
    visits: NDArray[np.int32],
    value: NDArray[np.float64],
    estimate: NDArray[np.float64],
    solved: NDArray[np.bool_],
    prior: NDArray[np.float32],
    logit: NDArray[np.float32],
    edge_visits: NDArray[np.int32],
    edge_value: NDArray[np.float64],
    child: NDArray[np.int32],
    closed: NDArray[np.bool_],
    settings: NDArray[np.float64],
) -> int:
    """Follow the best edges from `path_nodes[depth]`. Returns the depth where the descent ends.

    It ends at a node of chance, at one that is solved or has no edges yet, or behind an edge without a child, where the
    path's node is -1.

    Args:
        improved: select by the improved policy instead of PUCT.
        root_prior: float32, PUCT's priors of the edges of `path_nodes[0]`, with its noise.
    """
    while True:
        node = path_nodes[depth]
        if node < 0 or actor[node] < 0 or count[node] == 0 or solved[node]:
            return depth
        seat = actor[node]
        if improved:
            edge = _improved_edge(
                first[node], count[node], estimate[node, seat], prior, logit, edge_visits, edge_value, closed, settings
            )
        else:
            mean = value[node, seat] / visits[node]
            priors, start = (root_prior, 0) if depth == 0 else (prior, first[node])
            edge = _puct_edge(
                first[node], count[node], visits[node], mean, priors, start, edge_visits, edge_value, closed, settings
            )
        path_edges[depth] = edge
        depth += 1
        path_nodes[depth] = child[edge]


@_compiled(
    types.void(
        _INT, _INTS, _INTS, _VALUES, _INTS, _INTS, _INTS, _INTS, _TABLE, _TABLE, _BOOLS, _INTS, _VALUES, _INTS
    )
)  # fmt: skip
def back_up(
    depth: int,
    path_nodes: NDArray[np.int32],
    path_edges: NDArray[np.int32],
    values: NDArray[np.float64],
    actor: NDArray[np.int32],
    first: NDArray[np.int32],
    count: NDArray[np.int32],
    visits: NDArray[np.int32],
    value: NDArray[np.float64],
    estimate: NDArray[np.float64],
    solved: NDArray[np.bool_],
    edge_visits: NDArray[np.int32],
    edge_value: NDArray[np.float64],
    child: NDArray[np.int32],
) -> None:
    """Add one visit to the path, whose last node was found to be worth `values` [seats].

    A node that a seat acts in is worth the mean of its own estimate and of its edges' children, an edge counting as
    often as it was taken; a child may have been visited from other parents too. A chance node is worth the mean of what
    was backed up through it.
    """
    seats = len(values)
    for place in range(depth, -1, -1):
        node = path_nodes[place]
        edge = path_edges[place] if place < depth else -1
        visits[node] += 1
        if edge < 0:
            for seat in range(seats):
                value[node, seat] += values[seat]
            continue
        edge_visits[edge] += 1
        for seat in range(seats):
            value[node, seat] = estimate[node, seat]
        for other in range(first[node], first[node] + count[node]):
            taken = edge_visits[other]
            if taken > 0:
                below = child[other]
                for seat in range(seats):
                    mean = estimate[below, seat] if solved[below] else value[below, seat] / visits[below]
                    value[node, seat] += taken * mean
                    if seat == actor[node]:
                        edge_value[other] = taken * mean


@_compiled(_INT(_INT, _INT, _INT, _INTS, _TABLE, _BOOLS, _BOOLS))
def _best_if_solved(
    first: int,
    count: int,
    seat: int,
    child: NDArray[np.int32],
    estimate: NDArray[np.float64],
    solved: NDArray[np.bool_],
    closed: NDArray[np.bool_],
) -> int:
    """The solved child of highest value for `seat`, if it is 1 or all children are solved; else -1.

    Edges of solved children that are worse than it, or -1, are closed.
    """
    best = -1
    complete = True
    for edge in range(first, first + count):
        node = child[edge]
        if node < 0 or not solved[node]:
            complete = False
        elif best < 0 or estimate[node, seat] > estimate[best, seat]:
            best = node
    if best < 0:
        return -1
    bound = estimate[best, seat]
    for edge in range(first, first + count):
        node = child[edge]
        if node >= 0 and solved[node]:
            closed[edge] = estimate[node, seat] < bound or bound <= -1.0
    return best if complete or bound >= 1.0 else -1


@_compiled(types.void(_INT, _INTS, _INTS, _INTS, _INTS, _INTS, _TABLE, _BOOLS, _INTS, _INTS, _VALUES, _BOOLS))
def back_up_proof(
    depth: int,
    path_nodes: NDArray[np.int32],
    path_edges: NDArray[np.int32],
    actor: NDArray[np.int32],
    first: NDArray[np.int32],
    count: NDArray[np.int32],
    estimate: NDArray[np.float64],
    solved: NDArray[np.bool_],
    child: NDArray[np.int32],
    edge_visits: NDArray[np.int32],
    edge_value: NDArray[np.float64],
    closed: NDArray[np.bool_],
) -> None:
    """Solve the nodes of the path that the solved node at its end decides (Winands et al. 2008, MCTS-Solver).

    A node is solved where the seat that acts reaches 1, or where all children are solved. Chance nodes never are. The
    mean of an edge with a solved child becomes its exact value.
    """
    for place in range(depth - 1, -1, -1):
        node, below, edge = path_nodes[place], path_nodes[place + 1], path_edges[place]
        if edge < 0 or not solved[below]:
            return
        seat = actor[node]
        edge_value[edge] = estimate[below, seat] * edge_visits[edge]
        best = _best_if_solved(first[node], count[node], seat, child, estimate, solved, closed)
        if best < 0:
            return
        solved[node] = True
        estimate[node] = estimate[best]
