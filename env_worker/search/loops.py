"""The compiled loops of a search tree: selection, backup, improved policy.

Columns of nodes: `actor` int32 [N] (seat that acts, or below 0: chance, or over), `first` and `count` int32 [N] (its
edges), `visits` int32 [N], `value` float64 [N, seats] (sum of what was backed up), `estimate` float64 [N, seats] (the
network's, or the outcome). Columns of edges: `prior` and `logit` float32 [E], `edge_visits` int32 [E], `edge_value`
float64 [E] (sum, of the seat that acts), `child` int32 [E] (-1: none yet).

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
_TABLE = types.float64[:, ::1]
_INT, _FLOAT = types.int64, types.float64
LOWEST = -1e300


class Setting(IntEnum):
    """Place of each setting in `settings`."""

    EXPLORATION = 0
    EXPLORATION_BASE = 1
    FIRST_PLAY_REDUCTION = 2
    VISIT_OFFSET = 3
    VALUE_SCALE = 4


_EXPLORATION, _BASE, _REDUCTION = int(Setting.EXPLORATION), int(Setting.EXPLORATION_BASE), int(Setting.FIRST_PLAY_REDUCTION)
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


@_compiled(_INT(_INT, _INT, _FLOAT, _FLOATS, _FLOATS, _INTS, _VALUES, _VALUES))
def _improved_edge(
    first: int,
    count: int,
    estimate: float,
    prior: NDArray[np.float32],
    logit: NDArray[np.float32],
    edge_visits: NDArray[np.int32],
    edge_value: NDArray[np.float64],
    settings: NDArray[np.float64],
) -> int:
    """The edge whose visits lag most behind the improved policy (Danihelka et al. 2022, equation 14)."""
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
        score = policy[place] / mass - edge_visits[first + place] / (1.0 + total)
        if score > best_score:
            best, best_score = first + place, score
    return best


@_compiled(_INT(_INT, _INT, _INT, _FLOAT, _FLOATS, _INT, _INTS, _VALUES, _VALUES))
def _puct_edge(
    first: int,
    count: int,
    visits: int,
    node_value: float,
    prior: NDArray[np.float32],
    prior_first: int,
    edge_visits: NDArray[np.int32],
    edge_value: NDArray[np.float64],
    settings: NDArray[np.float64],
) -> int:
    """The edge of greatest Q + U (Silver et al. 2018).

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
        taken = edge_visits[edge]
        q = edge_value[edge] / taken if taken > 0 else unvisited
        score = q + exploration * prior[prior_first + place] / (1.0 + taken)
        if score > best_score:
            best, best_score = edge, score
    return best


@_compiled(
    _INT(
        _INT, _INTS, _INTS, types.boolean, _FLOATS, _INTS, _INTS, _INTS, _INTS, _TABLE, _TABLE, _FLOATS, _FLOATS, _INTS,
        _VALUES, _INTS, _VALUES,
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
    prior: NDArray[np.float32],
    logit: NDArray[np.float32],
    edge_visits: NDArray[np.int32],
    edge_value: NDArray[np.float64],
    child: NDArray[np.int32],
    settings: NDArray[np.float64],
) -> int:
    """Follow the best edges from `path_nodes[depth]`. Returns the depth where the descent ends.

    It ends at a node of chance, at one that is over or has no edges yet, or behind an edge without a child, where the
    path's node is -1.

    Args:
        improved: select by the improved policy instead of PUCT.
        root_prior: float32, PUCT's priors of the edges of `path_nodes[0]`, with its noise.
    """
    while True:
        node = path_nodes[depth]
        if node < 0 or actor[node] < 0 or count[node] == 0:
            return depth
        seat = actor[node]
        if improved:
            edge = _improved_edge(
                first[node], count[node], estimate[node, seat], prior, logit, edge_visits, edge_value, settings
            )
        else:
            mean = value[node, seat] / visits[node]
            priors, start = (root_prior, 0) if depth == 0 else (prior, first[node])
            edge = _puct_edge(
                first[node], count[node], visits[node], mean, priors, start, edge_visits, edge_value, settings
            )
        path_edges[depth] = edge
        depth += 1
        path_nodes[depth] = child[edge]


@_compiled(types.void(_INT, _INTS, _INTS, _VALUES, _INTS, _INTS, _TABLE, _INTS, _VALUES))
def back_up(
    depth: int,
    path_nodes: NDArray[np.int32],
    path_edges: NDArray[np.int32],
    values: NDArray[np.float64],
    actor: NDArray[np.int32],
    visits: NDArray[np.int32],
    value: NDArray[np.float64],
    edge_visits: NDArray[np.int32],
    edge_value: NDArray[np.float64],
) -> None:
    """Add one visit and `values` [seats] to the nodes of the path, and to each edge the value of the seat that acts."""
    for place in range(depth + 1):
        node = path_nodes[place]
        visits[node] += 1
        for seat in range(len(values)):
            value[node, seat] += values[seat]
        if place < depth:
            edge = path_edges[place]
            if edge >= 0:
                edge_visits[edge] += 1
                edge_value[edge] += values[actor[node]]
