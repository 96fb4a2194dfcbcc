"""A search tree in arrays, with room that grows, and a node's game beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simul.env_worker.games.base.turn_game import CHANCE, TurnGame
from simul.env_worker.search import loops
from simul.env_worker.search.loops import Columns, RootColumns

OVER = -2  # `actor` of a node where the game is over
NO_EDGE = -1  # in a path, behind a chance node


class Tree:
    """Nodes and edges of one game's search.

    Node 0 is the root. A node that a seat acts in has its edges after `expand`. The children of a chance node are kept
    by event, because there may be too many events to list.

    A node may have several parents: positions with one key after equally many moves are one node. Columns of nodes are
    0 behind those in use.

    Attributes:
        node_count, edge_count: number in use.
        nodes, edges, path: columns, with room to grow; see `simul.env_worker.search.loops`.
        games: the position of each node; moves: made from the first root on, events included.
    """

    def __init__(self, seats: int) -> None:
        self._seats = seats
        self.clear()

    def clear(self) -> None:
        """Drop every node."""
        self.node_count = self.edge_count = 0
        self.games: list[TurnGame] = []
        self.moves: list[int] = []
        self._events: dict[int, dict[int, int]] = {}
        self._positions: dict[tuple[int, bytes], int] = {}
        self._use(_new_nodes(64, self._seats), _new_edges(256))

    def _use(self, of_nodes: Columns, of_edges: Columns) -> None:
        """Take these arrays for the columns; see `loops.Columns`."""
        self._of_nodes, self._of_edges = of_nodes, of_edges
        self._columns = (*of_nodes, *of_edges)
        self.path, self.nodes, self.edges = loops.named(self._columns)

    def add_node(self, game: TurnGame, actor: int, moves: int, estimate: ArrayLike = 0.0) -> int:
        """A node without visits or edges. `estimate`: [seats], of a game that is over; else 0 until `expand`."""
        if self.node_count + 2 > len(self.nodes.actor):  # a path of all nodes has one place more
            path, places, worth, solved = self._of_nodes
            self._use((_doubled(path, 1), _doubled(places, 1), _doubled(worth, 1), _doubled(solved)), self._of_edges)
        node = self.node_count
        self.node_count += 1
        self.games.append(game)
        self.moves.append(moves)
        self.nodes.actor[node] = actor
        if actor == OVER:
            self.nodes.estimate[node] = estimate
            self.nodes.solved[node] = True
        elif actor == CHANCE:
            self._events[node] = {}
        return node

    def expand(
        self, node: int, depth: int, actions: NDArray[np.int64], priors: NDArray[np.float32],
        logits: NDArray[np.float32], values: NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Give the node at the end of the path its edges, and back up its values; see `loops.expand`."""
        start = self.edge_count
        self.edge_count += len(actions)
        while self.edge_count > len(self.edges.action):
            links, value, guess, closed = self._of_edges
            self._use(self._of_nodes, (_doubled(links, 1), _doubled(value), _doubled(guess, 1), _doubled(closed)))
        loops.expand(node, start, actions, priors, logits, values, depth, self._columns)

    def edges_of(self, node: int) -> slice:
        """The node's edges, in the order of its legal actions."""
        first = int(self.nodes.first_edge[node])
        return slice(first, first + int(self.nodes.num_edges[node]))

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
        self, depth: int, wanted: int, improved: bool, root: RootColumns, settings: NDArray[np.float64]
    ) -> tuple[int, int, int, int]:
        """See `loops.descend`."""
        return loops.descend(depth, wanted, improved, root, self._columns, settings)

    def back_up(self, depth: int, values: NDArray[np.float64]) -> None:
        """See `loops.back_up`."""
        loops.back_up(depth, values, self._columns)

    def improved_logits(self, node: int, settings: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `loops.improved_logits`."""
        return loops.improved_logits(node, self.nodes, self.edges, settings)

    def reroot(self, root: int) -> None:
        """Keep `root` and what lies below it, with its statistics."""
        below = self._nodes_below(root)
        self.edge_count = loops.keep_nodes(below, self.node_count, self.nodes, self.edges)
        self.node_count = len(below)
        kept = below.tolist()
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
        return loops.nodes_below(root, self.node_count, parents, children, self.nodes, self.edges)


def _new_nodes(room: int, seats: int) -> Columns:
    """Arrays of the path and of the nodes."""
    path, places = np.zeros((2, room), np.int32), np.zeros((4, room), np.int32)
    return path, places, np.zeros((2, room, seats)), np.zeros(room, np.bool_)


def _new_edges(room: int) -> Columns:
    """Arrays of the edges."""
    links, guess = np.zeros((3, room), np.int32), np.zeros((2, room), np.float32)
    return links, np.zeros(room), guess, np.zeros(room, np.bool_)


def _doubled(array: Any, axis: int = 0) -> Any:
    return np.concatenate((array, np.zeros_like(array)), axis)
