"""A search tree in arrays, with room that grows, and a node's game beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simul.env_worker.games.base.turn_game import CHANCE, TurnGame
from simul.env_worker.search import loops

OVER = -2  # `actor` of a node where the game is over
NO_EDGE = -1  # in a path, behind a chance node

_NODE_COLUMNS = ("actor", "first", "count", "visits", "value", "estimate", "solved", "path_nodes", "path_edges")
_EDGE_COLUMNS = ("action", "child", "edge_visits", "edge_value", "prior", "logit", "closed")


class Tree:
    """Nodes and edges of one game's search; `simul.env_worker.search.loops` says what the columns hold.

    Node 0 is the root. A node that a seat acts in has its edges after `expand`. The children of a chance node are kept
    by event, because there may be too many events to list.

    A node may have several parents: positions with one key after equally many moves are one node. Columns of nodes are
    0 behind those in use.

    Attributes:
        nodes, edges: number in use.
        games: the position of each node; moves: made from the first root on, events included.
        action: int32 [E], of each edge.
    """

    def __init__(self, seats: int) -> None:
        self._seats = seats
        self.clear()

    def clear(self) -> None:
        """Drop every node."""
        self.nodes = self.edges = 0
        self.games: list[TurnGame] = []
        self.moves: list[int] = []
        self._events: dict[int, dict[int, int]] = {}
        self._positions: dict[tuple[int, bytes], int] = {}
        node, edge = self._node_columns(64), self._edge_columns(256)
        self.actor, self.first, self.count, self.visits, self.value, self.estimate, self.solved = node[:7]
        self.path_nodes, self.path_edges = node[7:]
        self.action, self.child, self.edge_visits, self.edge_value, self.prior, self.logit, self.closed = edge
        self._gather_arguments()

    def _gather_arguments(self) -> None:
        """Columns in the order in which the loops that every leaf calls take them."""
        nodes = self._nodes = (
            self.actor, self.first, self.count, self.visits, self.value, self.estimate, self.solved,
        )  # fmt: skip
        edges = (self.edge_visits, self.edge_value, self.child)
        self._path = (self.path_nodes, self.path_edges)
        self._below = (*nodes, self.prior, self.logit, *edges, self.closed)
        self._new_edges = (self.action, self.prior, self.logit, self.closed)
        self._above = (*self._path, *nodes, *edges)

    def _node_columns(self, room: int) -> tuple[NDArray[Any], ...]:
        ints = [np.zeros(room, np.int32) for _ in range(6)]
        tables = [np.zeros((room, self._seats)) for _ in range(2)]
        return (*ints[:4], *tables, np.zeros(room, np.bool_), *ints[4:])

    @staticmethod
    def _edge_columns(room: int) -> tuple[NDArray[Any], ...]:
        ints = [np.zeros(room, np.int32) for _ in range(3)]
        floats = [np.zeros(room, np.float32) for _ in range(2)]
        return (*ints, np.zeros(room), *floats, np.zeros(room, np.bool_))

    def add_node(self, game: TurnGame, actor: int, moves: int, estimate: ArrayLike = 0.0) -> int:
        """A node without visits or edges. `estimate`: [seats], of a game that is over; else 0 until `expand`."""
        if self.nodes + 2 > len(self.actor):  # a path of all nodes has one place more
            self._grow(_NODE_COLUMNS)
        node = self.nodes
        self.nodes += 1
        self.games.append(game)
        self.moves.append(moves)
        self.actor[node] = actor
        if actor == OVER:
            self.estimate[node] = estimate
            self.solved[node] = True
        elif actor == CHANCE:
            self._events[node] = {}
        return node

    def expand(
        self, node: int, depth: int, actions: NDArray[np.int64], priors: NDArray[np.float32],
        logits: NDArray[np.float32], values: NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Give the node at the end of the path its edges, and back up its values; see `loops.expand`."""
        edges, count = self.edges, len(actions)
        while edges + count > len(self.action):
            self._grow(_EDGE_COLUMNS)
        loops.expand(node, edges, actions, priors, logits, values, *self._new_edges, depth, *self._above)
        self.edges = edges + count

    def edges_of(self, node: int) -> slice:
        """The node's edges, in the order of its legal actions."""
        first = int(self.first[node])
        return slice(first, first + int(self.count[node]))

    def child_at(self, node: int, event: int) -> int:
        """The child of a chance node behind `event`, -1 where there is none."""
        return self._events[node].get(event, -1)

    def add_event(self, node: int, event: int, child: int) -> None:
        """Note the child of a chance node behind `event`."""
        self._events[node][event] = child

    def node_at(self, moves: int, key: bytes) -> int:
        """The node of a position, -1 where there is none."""
        return self._positions.get((moves, key), -1)

    def add_position(self, node: int, key: bytes) -> None:
        """Note the key of a node's position."""
        self._positions.setdefault((self.moves[node], key), node)

    def nearest_at(self, key: bytes) -> int:
        """The node of a position after the fewest moves, -1 where there is none."""
        found = [at for at in self._positions if at[1] == key]
        return self._positions[min(found)] if found else -1

    def descend(
        self, depth: int, wanted: int, noise: NDArray[np.float64], searched: NDArray[np.int32], improved: bool,
        root_prior: NDArray[np.float32], settings: NDArray[np.float64],
    ) -> int:  # fmt: skip
        """See `loops.descend`."""
        return loops.descend(
            depth, wanted, noise, searched, *self._path, improved, root_prior, *self._below, settings
        )  # fmt: skip

    def back_up(self, depth: int, values: NDArray[np.float64]) -> None:
        """See `loops.back_up`; where the path ends at a solved node, also `loops.back_up_proof`."""
        loops.back_up(
            depth, self.path_nodes, self.path_edges, values, self.actor, self.first, self.count, self.visits,
            self.value, self.estimate, self.solved, self.edge_visits, self.edge_value, self.child,
        )  # fmt: skip
        if self.solved[self.path_nodes[depth]]:
            loops.back_up_proof(
                depth, self.path_nodes, self.path_edges, self.actor, self.first, self.count, self.estimate,
                self.solved, self.child, self.edge_visits, self.edge_value, self.closed,
            )  # fmt: skip

    def improved_logits(self, node: int, settings: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `loops.improved_logits`; of the node's edges."""
        return loops.improved_logits(
            self.first[node], self.count[node], self.estimate[node, self.actor[node]], self.prior, self.logit,
            self.edge_visits, self.edge_value, settings,
        )  # fmt: skip

    def reroot(self, root: int) -> None:
        """Keep `root` and what lies below it, with its statistics."""
        nodes = self._nodes_below(root)
        self.edges = loops.keep_nodes(
            nodes, self.nodes, *self._nodes, self.action, self.child, self.edge_visits, self.edge_value, self.prior,
            self.logit, self.closed,
        )  # fmt: skip
        self.nodes = len(nodes)
        kept = nodes.tolist()
        moved = {old: new for new, old in enumerate(kept)}
        self.games = [self.games[node] for node in kept]
        self.moves = [self.moves[node] for node in kept]
        self._positions = {at: moved[node] for at, node in self._positions.items() if node in moved}
        self._events = {
            moved[node]: {event: moved[child] for event, child in events.items()}
            for node, events in self._events.items()
            if node in moved
        }

    def _nodes_below(self, root: int) -> NDArray[np.int32]:
        """See `loops.nodes_below`."""
        pairs = [(node, child) for node, events in self._events.items() for child in events.values()]
        parents, children = np.array(pairs, np.int32).reshape(-1, 2).T.copy()
        return loops.nodes_below(root, self.nodes, parents, children, self.actor, self.first, self.count, self.child)

    def _grow(self, columns: Sequence[str]) -> None:
        for name in columns:
            old = getattr(self, name)
            setattr(self, name, np.concatenate((old, np.zeros_like(old))))
        self._gather_arguments()
