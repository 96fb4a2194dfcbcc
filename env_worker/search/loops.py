"""The compiled loops of a search tree: selection, backup, improved policy.

They take the columns of a tree as `Nodes`, `Edges` and `Path`, the root's noise as `Root`, and `settings`, float64: see
`Setting`. Those that every leaf calls take them as `Columns`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from simul.common.runtime.compiled import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    UINT8,
    column,
    columns,
    compiled,
    trailing_zeros,
)

LOWEST = -1e300
CHANCE = -1  # `actor` of a node of chance


class Nodes(NamedTuple):
    """Columns of nodes.

    Attributes:
        actor: int32 [N], the seat that acts, or below 0: chance, or over.
        first_edge, num_edges: int32 [N], its edges.
        visits: int32 [N].
        value: float64 [N, seats], mean times visits.
        estimate: float64 [N, seats], the network's, or the exact value where `solved`.
        solved: bool [N], over, or proven by what lies below it.
    """

    actor: NDArray[np.int32]
    first_edge: NDArray[np.int32]
    num_edges: NDArray[np.int32]
    visits: NDArray[np.int32]
    value: NDArray[np.float64]
    estimate: NDArray[np.float64]
    solved: NDArray[np.bool_]


class Edges(NamedTuple):
    """Columns of edges.

    Attributes:
        action: int32 [E].
        child: int32 [E], -1: none yet.
        visits: int32 [E].
        value: float64 [E], mean times visits, of the seat that acts.
        prior, logit: float32 [E].
        closed: bool [E], proven to be worse than another edge, or lost; not selected.
    """

    action: NDArray[np.int32]
    child: NDArray[np.int32]
    visits: NDArray[np.int32]
    value: NDArray[np.float64]
    prior: NDArray[np.float32]
    logit: NDArray[np.float32]
    closed: NDArray[np.bool_]


class Path(NamedTuple):
    """int32 [N]: the nodes from the root on, and the edge that leaves each, -1 at chance."""

    nodes: NDArray[np.int32]
    edges: NDArray[np.int32]


class Root(NamedTuple):
    """What a search adds at its root, [K], for each of the root's edges.

    Attributes:
        noise: float64, Gumbel draws of sequential halving.
        searched: int32, how often sequential halving has chosen the edge.
        prior: float32, PUCT's priors, with their noise.
    """

    noise: NDArray[np.float64]
    searched: NDArray[np.int32]
    prior: NDArray[np.float32]


# Of a path, nodes and edges, the columns of one type are rows of one array, and all arrays, like those of a root, are a
# plain tuple: a call takes time for each array, and twice as long for a namedtuple or a tuple of tuples.
Columns = tuple[Any, ...]
RootColumns = tuple[Any, ...]


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

_INTS, _FLOATS, _VALUES, _BOOLS = column(INT32), column(FLOAT32), column(FLOAT64), column(BOOL)
_LONGS, _ROWS, _TABLE = column(INT64), column(UINT8, 2), column(FLOAT64, 2)
_NODES = columns(Nodes, _INTS, _INTS, _INTS, _INTS, _TABLE, _TABLE, _BOOLS)
_EDGES = columns(Edges, _INTS, _INTS, _INTS, _VALUES, _FLOATS, _FLOATS, _BOOLS)
_PATH = columns(Path, _INTS, _INTS)
_ROOT = columns(Root, _VALUES, _INTS, _FLOATS)
_COLUMNS = types.Tuple(
    [
        column(INT32, 2),
        column(INT32, 2),
        column(FLOAT64, 3),
        _BOOLS,
        column(INT32, 2),
        _VALUES,
        column(FLOAT32, 2),
        _BOOLS,
    ]
)
_ROOT_COLUMNS = types.Tuple(list(_ROOT))


@compiled(INT64, _NODES, _EDGES, _VALUES)
def improved_logits(node: int, nodes: Nodes, edges: Edges, settings: NDArray[np.float64]) -> NDArray[np.float64]:
    """logits + sigma(completed Q), float64 [K], of a node's edges (Danihelka et al. 2022, equations 8, 10, 33).

    Q is brought from [-1, 1] to [0, 1]. An action without a visit gets the mixed value of the node, whose own is its
    estimate for the seat that acts.
    """
    first, count = nodes.first_edge[node], nodes.num_edges[node]
    estimate = nodes.estimate[node, nodes.actor[node]]
    most = total = 0
    visited_prior = weighted = 0.0
    for edge in range(first, first + count):
        visits = edges.visits[edge]
        if visits > 0:
            total += visits
            most = max(most, visits)
            visited_prior += edges.prior[edge]
            weighted += edges.prior[edge] * edges.value[edge] / visits
    mixed = estimate
    if visited_prior > 0.0:
        mixed = (estimate + total * weighted / visited_prior) / (1 + total)
    scale = (settings[_VISIT_OFFSET] + most) * settings[_VALUE_SCALE]
    logits = np.empty(count, np.float64)
    for place in range(count):
        edge = first + place
        visits = edges.visits[edge]
        q = edges.value[edge] / visits if visits > 0 else mixed
        logits[place] = edges.logit[edge] + scale * 0.5 * (q + 1.0)
    return logits


@compiled(INT64, _NODES, _EDGES, _VALUES)
def _improved_edge(node: int, nodes: Nodes, edges: Edges, settings: NDArray[np.float64]) -> int:
    """The open edge whose visits lag most behind the improved policy (Danihelka et al. 2022, equation 14)."""
    first, count = nodes.first_edge[node], nodes.num_edges[node]
    policy = improved_logits(node, nodes, edges, settings)
    highest = policy.max()
    mass = 0.0
    total = 0
    for place in range(count):
        policy[place] = np.exp(policy[place] - highest)
        mass += policy[place]
        total += edges.visits[first + place]
    best, best_score = first, LOWEST
    for place in range(count):
        if edges.closed[first + place]:
            continue
        score = policy[place] / mass - edges.visits[first + place] / (1.0 + total)
        if score > best_score:
            best, best_score = first + place, score
    return best


@compiled(INT64, _FLOATS, INT64, _NODES, _EDGES, _VALUES)
def _puct_edge(
    node: int,
    prior: NDArray[np.float32],
    prior_first: int,
    nodes: Nodes,
    edges: Edges,
    settings: NDArray[np.float64],
) -> int:
    """The open edge of greatest Q + U (Silver et al. 2018); the node's priors begin at `prior_first` of `prior`.

    An unvisited action's Q is the node's value less a reduction that grows with the visited share of the priors
    (KataGo).
    """
    first, count, visits = nodes.first_edge[node], nodes.num_edges[node], nodes.visits[node]
    base = settings[_BASE]
    exploration = (settings[_EXPLORATION] + np.log((1.0 + visits + base) / base)) * np.sqrt(visits)
    visited_prior = 0.0
    for place in range(count):
        if edges.visits[first + place] > 0:
            visited_prior += prior[prior_first + place]
    node_value = nodes.value[node, nodes.actor[node]] / visits
    unvisited = max(node_value - settings[_REDUCTION] * np.sqrt(visited_prior), -1.0)
    best, best_score = first, LOWEST
    for place in range(count):
        edge = first + place
        if edges.closed[edge]:
            continue
        taken = edges.visits[edge]
        q = edges.value[edge] / taken if taken > 0 else unvisited
        score = q + exploration * prior[prior_first + place] / (1.0 + taken)
        if score > best_score:
            best, best_score = edge, score
    return best


@compiled(INT64, _ROOT, INT64, _NODES, _EDGES, _VALUES)
def _scheduled_edge(
    wanted: int, root: Root, node: int, nodes: Nodes, edges: Edges, settings: NDArray[np.float64]
) -> int:
    """Sequential halving: the open edge of greatest g + logits + sigma(Q), of those that were searched `wanted` times.

    Where all of those are closed, of all open ones.
    """
    first = nodes.first_edge[node]
    logits = improved_logits(node, nodes, edges, settings)
    best, best_of_all = -1, 0
    score = score_of_all = -np.inf
    for place in range(len(logits)):
        if edges.closed[first + place]:
            continue
        found = root.noise[place] + logits[place]
        if found > score_of_all:
            best_of_all, score_of_all = place, found
        if root.searched[place] == wanted and (best < 0 or found > score):
            best, score = place, found
    place = best if best >= 0 else best_of_all
    root.searched[place] += 1
    return first + place


@compiled(_COLUMNS)
def named(columns: Columns) -> tuple[Path, Nodes, Edges]:
    """Path, nodes and edges in `columns`."""
    path, places, worth, solved, links, value, guess, closed = columns
    return (
        Path(path[0], path[1]),
        Nodes(places[0], places[1], places[2], places[3], worth[0], worth[1], solved),
        Edges(links[0], links[1], links[2], value, guess[0], guess[1], closed),
    )


@compiled(INT64, INT64, BOOL, _ROOT_COLUMNS, _COLUMNS, _VALUES)
def descend(
    depth: int,
    wanted: int,
    improved: bool,
    root_columns: RootColumns,
    columns: Columns,
    settings: NDArray[np.float64],
) -> tuple[int, int, int, int]:
    """Follow the best edges from the path's node at `depth`, the root at 0.

    Returns the depth where the descent ends and the node there; where that is -1, the edge before it and its action,
    too. It ends at a node of chance, at one that is solved or has no edges yet, or behind an edge without a child,
    where the path's node is -1.

    Args:
        wanted: from 0 up: choose the root's edge by sequential halving, of the actions that it has searched so often.
            -1: as at every other node.
        improved: select by the improved policy instead of PUCT.
    """
    path, nodes, edges = named(columns)
    root = Root(*root_columns)
    if depth == 0:
        path.nodes[0] = 0
    if wanted >= 0:
        edge = _scheduled_edge(wanted, root, path.nodes[0], nodes, edges, settings)
        path.edges[0] = edge
        depth = 1
        path.nodes[1] = edges.child[edge]
    while True:
        node = path.nodes[depth]
        if node < 0:
            edge = path.edges[depth - 1]
            return depth, node, edge, edges.action[edge]
        if nodes.actor[node] < 0 or nodes.num_edges[node] == 0 or nodes.solved[node]:
            return depth, node, -1, -1
        if improved:
            edge = _improved_edge(node, nodes, edges, settings)
        elif depth == 0:
            edge = _puct_edge(node, root.prior, 0, nodes, edges, settings)
        else:
            edge = _puct_edge(node, edges.prior, nodes.first_edge[node], nodes, edges, settings)
        path.edges[depth] = edge
        depth += 1
        path.nodes[depth] = edges.child[edge]


@compiled(INT64, _VALUES, _PATH, _NODES, _EDGES)
def _add_visit(depth: int, values: NDArray[np.float64], path: Path, nodes: Nodes, edges: Edges) -> None:
    """Add one visit to the path, whose last node was found to be worth `values` [seats].

    A node that a seat acts in is worth the mean of its own estimate and of its edges' children, an edge counting as
    often as it was taken; a child may have been visited from other parents too. A chance node is worth the mean of what
    was backed up through it.
    """
    seats = len(values)
    for place in range(depth, -1, -1):
        node = path.nodes[place]
        edge = path.edges[place] if place < depth else -1
        nodes.visits[node] += 1
        if edge < 0:
            for seat in range(seats):
                nodes.value[node, seat] += values[seat]
            continue
        edges.visits[edge] += 1
        for seat in range(seats):
            nodes.value[node, seat] = nodes.estimate[node, seat]
        first = nodes.first_edge[node]
        for other in range(first, first + nodes.num_edges[node]):
            taken = edges.visits[other]
            if taken > 0:
                below = edges.child[other]
                for seat in range(seats):
                    solved = nodes.solved[below]
                    mean = nodes.estimate[below, seat] if solved else nodes.value[below, seat] / nodes.visits[below]
                    nodes.value[node, seat] += taken * mean
                    if seat == nodes.actor[node]:
                        edges.value[other] = taken * mean


@compiled(INT64, INT64, _LONGS, _FLOATS, _FLOATS, _VALUES, INT64, _COLUMNS)
def expand(
    node: int,
    start: int,
    actions: NDArray[np.int64],
    priors: NDArray[np.float32],
    logits: NDArray[np.float32],
    values: NDArray[np.float64],
    depth: int,
    columns: Columns,
) -> None:
    """Give `node`, where the path ends, its edges from the place `start` on, and back up its `values` [seats].

    Args:
        actions, priors, logits: [K], of the edges.
    """
    path, nodes, edges = named(columns)
    nodes.first_edge[node], nodes.num_edges[node] = start, len(actions)
    for seat in range(len(values)):
        nodes.estimate[node, seat] = values[seat]
    for place in range(len(actions)):
        edge = start + place
        edges.action[edge], edges.prior[edge], edges.logit[edge] = actions[place], priors[place], logits[place]
        edges.child[edge], edges.visits[edge], edges.value[edge], edges.closed[edge] = -1, 0, 0.0, False
    _add_visit(depth, values, path, nodes, edges)


@compiled(INT64, _NODES, _EDGES)
def _best_if_solved(node: int, nodes: Nodes, edges: Edges) -> int:
    """The solved child of highest value for the seat that acts, if it is 1 or all children are solved; else -1.

    Edges of solved children that are worse than it, or -1, are closed.
    """
    first, seat = nodes.first_edge[node], nodes.actor[node]
    stop = first + nodes.num_edges[node]
    best = -1
    complete = True
    for edge in range(first, stop):
        child = edges.child[edge]
        if child < 0 or not nodes.solved[child]:
            complete = False
        elif best < 0 or nodes.estimate[child, seat] > nodes.estimate[best, seat]:
            best = child
    if best < 0:
        return -1
    bound = nodes.estimate[best, seat]
    for edge in range(first, stop):
        child = edges.child[edge]
        if child >= 0 and nodes.solved[child]:
            edges.closed[edge] = nodes.estimate[child, seat] < bound or bound <= -1.0
    return best if complete or bound >= 1.0 else -1


@compiled(INT64, _PATH, _NODES, _EDGES)
def _back_up_proof(depth: int, path: Path, nodes: Nodes, edges: Edges) -> None:
    """Solve the nodes of the path that the solved node at its end decides (Winands et al. 2008, MCTS-Solver).

    A node is solved where the seat that acts reaches 1, or where all children are solved. Chance nodes never are. The
    mean of an edge with a solved child becomes its exact value.
    """
    for place in range(depth - 1, -1, -1):
        node, below, edge = path.nodes[place], path.nodes[place + 1], path.edges[place]
        if edge < 0 or not nodes.solved[below]:
            return
        edges.value[edge] = nodes.estimate[below, nodes.actor[node]] * edges.visits[edge]
        best = _best_if_solved(node, nodes, edges)
        if best < 0:
            return
        nodes.solved[node] = True
        for seat in range(nodes.estimate.shape[1]):
            nodes.estimate[node, seat] = nodes.estimate[best, seat]


@compiled(INT64, _VALUES, _COLUMNS)
def back_up(depth: int, values: NDArray[np.float64], columns: Columns) -> None:
    """Add one visit to the path, and, where its last node is solved, solve what follows from that."""
    path, nodes, edges = named(columns)
    _add_visit(depth, values, path, nodes, edges)
    if nodes.solved[path.nodes[depth]]:
        _back_up_proof(depth, path, nodes, edges)


@compiled(INT64, INT64, _INTS, _INTS, _NODES, _EDGES)
def nodes_below(
    root: int,
    used: int,
    event_parents: NDArray[np.int32],
    event_children: NDArray[np.int32],
    nodes: Nodes,
    edges: Edges,
) -> NDArray[np.int32]:
    """int32 [N]: `root`, and the nodes below it of the first `used` nodes, each once, breadth first.

    Args:
        event_parents, event_children: int32 [P], nodes of chance and the children behind their events.
    """
    found = np.empty(used, np.int32)
    seen = np.zeros(used, np.bool_)
    found[0], seen[root] = root, True
    length, at = 1, 0
    while at < length:
        node = found[at]
        at += 1
        by_chance = nodes.actor[node] == CHANCE
        first = nodes.first_edge[node]
        start, stop = (0, len(event_parents)) if by_chance else (first, first + nodes.num_edges[node])
        for place in range(start, stop):
            if by_chance and event_parents[place] != node:
                continue
            below = event_children[place] if by_chance else edges.child[place]
            if below >= 0 and not seen[below]:
                found[length], seen[below] = below, True
                length += 1
    return found[:length].copy()


@compiled()
def _reorder(column: NDArray[Any], places: NDArray[np.int32], used: int) -> None:
    """Make `column[places]` the first of a column, and what is behind it of the first `used` 0."""
    moved = np.empty(len(places), column.dtype)
    for place in range(len(places)):
        moved[place] = column[places[place]]
    for place in range(used):
        column[place] = moved[place] if place < len(places) else 0


@compiled(_INTS, INT64, _NODES, _EDGES)
def keep_nodes(kept: NDArray[np.int32], used: int, nodes: Nodes, edges: Edges) -> int:
    """Make `kept` the only ones of the first `used` nodes, in this order, with their edges. Returns how many edges.

    All children of kept nodes are kept. Columns of nodes are 0 behind them.
    """
    place_of = np.empty(used, np.int32)
    total = 0
    for place in range(len(kept)):
        place_of[kept[place]] = place
        total += nodes.num_edges[kept[place]]
    moved, firsts = np.empty(total, np.int32), np.empty(len(kept), np.int32)
    total = 0
    for place in range(len(kept)):
        first = nodes.first_edge[kept[place]]
        firsts[place] = total
        for edge in range(first, first + nodes.num_edges[kept[place]]):
            moved[total] = edge
            total += 1
    for numbers in (edges.action, edges.child, edges.visits):
        _reorder(numbers, moved, total)
    for logits in (edges.prior, edges.logit):
        _reorder(logits, moved, total)
    _reorder(edges.value, moved, total)
    _reorder(edges.closed, moved, total)
    for edge in range(total):
        if edges.child[edge] >= 0:
            edges.child[edge] = place_of[edges.child[edge]]
    for numbers in (nodes.actor, nodes.first_edge, nodes.num_edges, nodes.visits):
        _reorder(numbers, kept, used)
    for place in range(len(kept)):
        nodes.first_edge[place] = firsts[place]
    for table in (nodes.value, nodes.estimate):
        for seat in range(table.shape[1]):
            _reorder(table[:, seat], kept, used)
    _reorder(nodes.solved, kept, used)
    return total


@compiled(_LONGS, _LONGS, INT64, _ROWS)
def pack_actions(
    actions: NDArray[np.int64], first: NDArray[np.int64], num_actions: int, bits: NDArray[np.uint8]
) -> int:
    """Set the bits of each row's actions. Returns the first row in which one is no action or there twice, else -1.

    Args:
        actions: int64 [K], those of one row after the other; first: int64 [N + 1], where they begin.
        bits: uint8 [N, W], zeros.
    """
    for row in range(len(bits)):
        for place in range(first[row], first[row + 1]):
            action = actions[place]
            if action < 0 or action >= num_actions or bits[row, action >> 3] >> (action & 7) & 1:
                return row
            bits[row, action >> 3] |= 1 << (action & 7)
    return -1


@compiled(_FLOATS, _LONGS, _LONGS, _ROWS, _FLOATS)
def priors_by_action(
    priors: NDArray[np.float32],
    actions: NDArray[np.int64],
    first: NDArray[np.int64],
    bits: NDArray[np.uint8],
    found: NDArray[np.float32],
) -> None:
    """Write to `found` [K] the prior of each of `actions`; `priors` [K] has those of a row in order of their ids.

    The other arguments as for `pack_actions`.
    """
    place_of = np.empty(8 * bits.shape[1], np.int64)
    for row in range(len(bits)):
        start, stop = first[row], first[row + 1]
        ascending = True
        for place in range(start, stop):
            place_of[actions[place]] = place
            ascending &= place == start or actions[place - 1] < actions[place]
        if ascending:
            for place in range(start, stop):
                found[place] = priors[place]
            continue
        at = start
        for byte in range(bits.shape[1]):
            rest = np.int64(bits[row, byte])
            while rest:
                found[place_of[8 * byte + trailing_zeros(rest)]] = priors[at]
                at += 1
                rest &= rest - 1
