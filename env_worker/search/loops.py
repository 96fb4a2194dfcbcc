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

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import BOOL, FLOAT32, FLOAT64, INT32, INT64, UINT8, column, compiled

_INT, _FLOAT = INT64, FLOAT64
_INTS, _FLOATS, _VALUES = column(INT32), column(FLOAT32), column(FLOAT64)
_TABLE, _BOOLS = column(FLOAT64, 2), column(BOOL)
_LONGS, _ROWS = column(INT64), column(UINT8, 2)
LOWEST = -1e300
CHANCE = -1  # `actor` of a node of chance


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


@compiled(_INT, _INT, _FLOAT, _FLOATS, _FLOATS, _INTS, _VALUES, _VALUES)
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


@compiled(_INT, _INT, _FLOAT, _FLOATS, _FLOATS, _INTS, _VALUES, _BOOLS, _VALUES)
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


@compiled(_INT, _INT, _INT, _FLOAT, _FLOATS, _INT, _INTS, _VALUES, _BOOLS, _VALUES)
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


@compiled(_INT, _VALUES, _INTS, _INT, _INT, _FLOAT, _FLOATS, _FLOATS, _INTS, _VALUES, _BOOLS, _VALUES)
def _scheduled_edge(
    wanted: int,
    noise: NDArray[np.float64],
    searched: NDArray[np.int32],
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
    """Sequential halving: the open edge of greatest g + logits + sigma(Q), of those that were searched `wanted` times.

    Where all of those are closed, of all open ones.
    """
    logits = improved_logits(first, count, estimate, prior, logit, edge_visits, edge_value, settings)
    best, best_of_all = -1, 0
    score = score_of_all = -np.inf
    for place in range(count):
        if closed[first + place]:
            continue
        found = noise[place] + logits[place]
        if found > score_of_all:
            best_of_all, score_of_all = place, found
        if searched[place] == wanted and (best < 0 or found > score):
            best, score = place, found
    place = best if best >= 0 else best_of_all
    searched[place] += 1
    return first + place


@compiled(
    _INT,
    _INT,
    _VALUES,
    _INTS,
    _INTS,
    _INTS,
    BOOL,
    _FLOATS,
    _INTS,
    _INTS,
    _INTS,
    _INTS,
    _TABLE,
    _TABLE,
    _BOOLS,
    _FLOATS,
    _FLOATS,
    _INTS,
    _VALUES,
    _INTS,
    _BOOLS,
    _VALUES,
)
def descend(
    depth: int,
    wanted: int,
    noise: NDArray[np.float64],
    searched: NDArray[np.int32],
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
        wanted: from 0 up: choose the root's edge by sequential halving, of the actions with so many visits in
            `searched`, which counts the chosen one; `noise`: float64 [K], its Gumbel draws. -1: as at every other node.
        improved: select by the improved policy instead of PUCT.
        root_prior: float32, PUCT's priors of the edges of `path_nodes[0]`, with its noise.
    """
    if wanted >= 0:
        node = path_nodes[0]
        edge = _scheduled_edge(
            wanted, noise, searched, first[node], count[node], estimate[node, actor[node]], prior, logit, edge_visits,
            edge_value, closed, settings,
        )  # fmt: skip
        path_edges[0] = edge
        depth = 1
        path_nodes[1] = child[edge]
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


@compiled(_INT, _INTS, _INTS, _VALUES, _INTS, _INTS, _INTS, _INTS, _TABLE, _TABLE, _BOOLS, _INTS, _VALUES, _INTS)
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


@compiled(
    _INT,
    _INT,
    _LONGS,
    _FLOATS,
    _FLOATS,
    _VALUES,
    _INTS,
    _FLOATS,
    _FLOATS,
    _BOOLS,
    _INT,
    _INTS,
    _INTS,
    _INTS,
    _INTS,
    _INTS,
    _INTS,
    _TABLE,
    _TABLE,
    _BOOLS,
    _INTS,
    _VALUES,
    _INTS,
)
def expand(
    node: int,
    edges: int,
    actions: NDArray[np.int64],
    priors: NDArray[np.float32],
    logits: NDArray[np.float32],
    values: NDArray[np.float64],
    action: NDArray[np.int32],
    prior: NDArray[np.float32],
    logit: NDArray[np.float32],
    closed: NDArray[np.bool_],
    depth: int,
    path_nodes: NDArray[np.int32],
    path_edges: NDArray[np.int32],
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
    """Give `node`, where the path ends, its edges from the place `edges` on, and back up its `values` [seats].

    Args:
        actions, priors, logits: [K], of the edges.
    """
    first[node], count[node] = edges, len(actions)
    for seat in range(len(values)):
        estimate[node, seat] = values[seat]
    stop = edges + len(actions)
    for place in range(len(actions)):
        action[edges + place] = actions[place]
    prior[edges:stop] = priors
    logit[edges:stop] = logits
    child[edges:stop] = -1
    edge_visits[edges:stop] = 0
    edge_value[edges:stop] = 0.0
    closed[edges:stop] = False
    back_up(
        depth, path_nodes, path_edges, values, actor, first, count, visits, value, estimate, solved, edge_visits,
        edge_value, child,
    )  # fmt: skip


@compiled(_INT, _INT, _INT, _INTS, _TABLE, _BOOLS, _BOOLS)
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


@compiled(_INT, _INTS, _INTS, _INTS, _INTS, _INTS, _TABLE, _BOOLS, _INTS, _INTS, _VALUES, _BOOLS)
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


@compiled(_INT, _INT, _INTS, _INTS, _INTS, _INTS, _INTS, _INTS)
def nodes_below(
    root: int,
    nodes: int,
    event_parents: NDArray[np.int32],
    event_children: NDArray[np.int32],
    actor: NDArray[np.int32],
    first: NDArray[np.int32],
    count: NDArray[np.int32],
    child: NDArray[np.int32],
) -> NDArray[np.int32]:
    """int32 [N]: `root`, and the nodes below it of the `nodes` in use, each once, breadth first.

    Args:
        event_parents, event_children: int32 [P], nodes of chance and the children behind their events.
    """
    found = np.empty(nodes, np.int32)
    seen = np.zeros(nodes, np.bool_)
    found[0], seen[root] = root, True
    used, at = 1, 0
    while at < used:
        node = found[at]
        at += 1
        by_chance = actor[node] == CHANCE
        start, stop = (0, len(event_parents)) if by_chance else (first[node], first[node] + count[node])
        for place in range(start, stop):
            if by_chance and event_parents[place] != node:
                continue
            below = event_children[place] if by_chance else child[place]
            if below >= 0 and not seen[below]:
                found[used], seen[below] = below, True
                used += 1
    return found[:used].copy()


@compiled(
    _INTS,
    _INT,
    _INTS,
    _INTS,
    _INTS,
    _INTS,
    _TABLE,
    _TABLE,
    _BOOLS,
    _INTS,
    _INTS,
    _INTS,
    _VALUES,
    _FLOATS,
    _FLOATS,
    _BOOLS,
)
def keep_nodes(
    kept: NDArray[np.int32],
    nodes: int,
    actor: NDArray[np.int32],
    first: NDArray[np.int32],
    count: NDArray[np.int32],
    visits: NDArray[np.int32],
    value: NDArray[np.float64],
    estimate: NDArray[np.float64],
    solved: NDArray[np.bool_],
    action: NDArray[np.int32],
    child: NDArray[np.int32],
    edge_visits: NDArray[np.int32],
    edge_value: NDArray[np.float64],
    prior: NDArray[np.float32],
    logit: NDArray[np.float32],
    closed: NDArray[np.bool_],
) -> int:
    """Make `kept` the only ones of the `nodes` in use, in this order, with their edges. Returns how many edges.

    All children of kept nodes are kept. Columns of nodes are 0 behind them.
    """
    place_of = np.empty(nodes, np.int32)
    total = 0
    for place in range(len(kept)):
        place_of[kept[place]] = place
        total += count[kept[place]]
    edges, firsts = np.empty(total, np.int32), np.empty(len(kept), np.int32)
    total = 0
    for place in range(len(kept)):
        node = kept[place]
        firsts[place] = total
        for edge in range(first[node], first[node] + count[node]):
            edges[total] = edge
            total += 1
    action[:total] = action[edges]
    child[:total] = child[edges]
    edge_visits[:total] = edge_visits[edges]
    edge_value[:total] = edge_value[edges]
    prior[:total] = prior[edges]
    logit[:total] = logit[edges]
    closed[:total] = closed[edges]
    for edge in range(total):
        if child[edge] >= 0:
            child[edge] = place_of[child[edge]]
    used = len(kept)
    actor[:used] = actor[kept]
    first[:used] = firsts
    count[:used] = count[kept]
    visits[:used] = visits[kept]
    value[:used] = value[kept]
    estimate[:used] = estimate[kept]
    solved[:used] = solved[kept]
    actor[used:nodes] = 0
    first[used:nodes] = 0
    count[used:nodes] = 0
    visits[used:nodes] = 0
    value[used:nodes] = 0.0
    estimate[used:nodes] = 0.0
    solved[used:nodes] = False
    return total


@compiled(_LONGS, _LONGS, _INT, _ROWS)
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
            found[start:stop] = priors[start:stop]
            continue
        at = start
        for byte in range(bits.shape[1]):
            rest = np.int64(bits[row, byte])
            action = 8 * byte
            while rest:
                if rest & 1:
                    found[place_of[action]] = priors[at]
                    at += 1
                rest >>= 1
                action += 1
