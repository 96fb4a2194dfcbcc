"""The search of one game: select a leaf, take its evaluation, choose a move.

search.begin(game, full=True, move=0)
while leaf := search.select():
    search.take(leaf, version, evaluation, logits)  # what the network said of it
result = search.result()
game.apply({seat: result.action})
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.config.search import SearchConfig
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.turn_game import CHANCE, Position, TurnGame, position_of
from simul.env_worker.search.evaluation_cache import (
    LEAST_PRIOR,
    CachedEvaluation,
    EvaluationCache,
    logits_of,
    position_key,
)
from simul.env_worker.search.loops import Root, RootColumns, Setting
from simul.env_worker.search.outcomes import outcome_of
from simul.env_worker.search.sequential_halving import visit_schedule
from simul.env_worker.search.tree import NO_EDGE, OVER, Tree

ROOT = 0
LEAST_TARGET = 1e-4  # smaller probabilities of the improved policy are left out of a target


class Leaf(NamedTuple):
    """A position that waits for its evaluation.

    Attributes:
        actor: the seat that acts.
        actions: int64 [K], legal ones, ascending.
        observations: wire dtype [R, D]: with one or two seats the actor's; with more every seat's, in order.
        key: of the evaluation cache.
    """

    node: int
    depth: int
    actor: int
    actions: NDArray[np.int64]
    observations: NDArray[Any]
    key: bytes


_Shown = tuple[int, NDArray[np.int64], NDArray[Any], bytes]  # the last four attributes of a Leaf


class SearchResult(NamedTuple):
    """What a search found.

    Attributes:
        action: the move to play.
        actions, policy: sparse policy target: intp [K] and float32 [K] that add up to 1; empty after a cheap search
            and where one action was legal.
        value: float64 [seats], mean of the root, proven where it is; None where one action was legal.
        simulations: number made for this move.
    """

    action: int
    actions: NDArray[np.intp]
    policy: NDArray[np.float32]
    value: NDArray[np.float64] | None
    simulations: int


class Search:
    """One tree, one leaf in flight, from move to move of one game.

    Games must be of perfect information apart from chance, with one seat acting at a time. Two seats are zero-sum: the
    network's value v of the seat that acts is -v for the other. With more seats every seat's value is asked, each from
    its own observation, and the policy from the seat's that acts.

    Args:
        draw: of noise, of temperature and of chance events; the whole search follows from it and the evaluations.
        cache: shared by the searches of one policy.
    """

    def __init__(self, config: SearchConfig, spec: GameSpec, draw: np.random.Generator, cache: EvaluationCache) -> None:
        self.num_actions = spec.num_actions
        self._config = config
        self.seats = spec.seats
        self._draw = draw
        self._chance = random.Random(int(draw.integers(2**63)))
        self._cache = cache
        self._tree = Tree(spec.seats)
        self._gumbel = config.method == "gumbel"
        self._settings = np.zeros(len(Setting))
        for setting, value in (
            (Setting.EXPLORATION, config.exploration),
            (Setting.EXPLORATION_BASE, config.exploration_base),
            (Setting.FIRST_PLAY_REDUCTION, config.first_play_reduction),
            (Setting.VISIT_OFFSET, config.visit_offset),
            (Setting.VALUE_SCALE, config.value_scale),
        ):
            self._settings[setting] = value
        self._full = True
        self._temperature = 0.0
        self._budget = 0
        self._simulations = 0
        self._legal = 0  # actions of the root
        self._fresh: _Shown  # of the node that was added last
        self._dirichlet = False
        self._schedule: tuple[int, ...] = ()
        self._begun = False  # the noise of the root is drawn
        self._root = Root(np.zeros(0), np.zeros(0, np.int32), np.zeros(0, np.float32))
        self._root_columns: RootColumns = tuple(self._root)

    @property
    def tree(self) -> Tree:
        """The tree below the position that was searched last."""
        return self._tree

    def begin(self, game: TurnGame, *, full: bool, move: int, noise: bool = True) -> None:
        """Search the position of `game`, which is not changed, for the seat that acts.

        Args:
            full: with all simulations; else a cheap search, without Dirichlet noise and without a policy target.
            move: number of the move in its game, for the temperature.
            noise: False for the strongest play: neither noise nor temperature.
        """
        config = self._config
        self._set_root(game)
        self._full = full
        early = move < config.temperature_moves
        self._temperature = (config.temperature if early else config.final_temperature) if noise else 0.0
        self._dirichlet = noise and full and not self._gumbel and config.noise_share > 0
        self._budget = config.simulations if full else min(config.cheap_simulations, config.simulations)
        self._simulations = 0
        self._begun = False

    def select(self) -> Leaf | None:
        """Simulate until a leaf needs an evaluation, which `take` brings; None when the search is over."""
        tree = self._tree
        while self._legal > 1 and self._left() > 0:
            depth, node = self._descend()
            if tree.nodes.solved[node]:
                self._back_up(depth, tree.nodes.estimate[node])
                continue
            leaf = Leaf(node, depth, *self._fresh)
            found = self._cache.find(leaf.key)
            if found is None:
                return leaf
            self._expand(leaf, found, logits_of(found.priors))
        return None

    def take(self, leaf: Leaf, version: int, evaluation: CachedEvaluation, logits: NDArray[np.float32]) -> None:
        """The answer to `leaf`, by the weights of `version`; `logits`: of its priors, float32 [K]."""
        self._cache.keep(leaf.key, version, evaluation)
        self._expand(leaf, evaluation, logits)

    def result(self) -> SearchResult:
        """The move, and what is learned from it. Of a search that is over."""
        tree = self._tree
        if self._legal == 1:
            only = tree.games[ROOT].legal_actions(int(tree.nodes.actor[ROOT]))
            return SearchResult(int(only[0]), only[:0], np.zeros(0, np.float32), None, 0)
        part = tree.edges_of(ROOT)
        actions = tree.edges.action[part].astype(np.intp)
        playable = self._playable()
        if self._gumbel:
            policy = _softmax(np.where(playable, tree.improved_logits(ROOT, self._settings), -np.inf))
            place = self._place_by_score(playable)
            policy[policy < LEAST_TARGET] = 0.0
        else:
            policy = np.where(playable, tree.edges.visits[part], 0).astype(np.float64)
            if not policy.any():  # the visited actions are proven to be lost
                policy = np.where(playable, np.maximum(tree.edges.prior[part], LEAST_PRIOR), 0).astype(np.float64)
            place = self._place_by_visits(policy)
        kept = np.flatnonzero(policy) if self._full else np.empty(0, np.intp)
        target = (policy[kept] / policy[kept].sum()).astype(np.float32)
        nodes = tree.nodes
        value = nodes.estimate[ROOT].copy() if nodes.solved[ROOT] else nodes.value[ROOT] / nodes.visits[ROOT]
        return SearchResult(int(actions[place]), actions[kept], target, value, self._simulations)

    def _set_root(self, game: TurnGame) -> None:
        """Make the position the root: the node that the tree has of it, else a new tree."""
        position = position_of(game)
        shown = self._show(position, position.acting[0])
        node = self._tree.nearest_at(shown[-1]) if self._config.reuse_tree else -1
        if node >= 0:
            self._tree.reroot(node)
        else:
            self._tree.clear()
            self._add(position._replace(game=game.clone()), 0)
        self._legal = len(position.actions)

    def _left(self) -> int:
        """Simulations still to be made; a root without edges needs its evaluation first.

        PUCT counts the visits that were kept from the move before, so a kept tree saves simulations. Sequential halving
        needs all of its own.
        """
        if self._tree.nodes.solved[ROOT]:
            return 0
        made = self._simulations if self._gumbel else int(self._tree.nodes.visits[ROOT]) - 1
        return self._budget - made if self._tree.nodes.num_edges[ROOT] else 1

    def _descend(self) -> tuple[int, int]:
        """Select a path from the root to a node that is over or has no edges yet. Returns its depth and the node."""
        tree = self._tree
        depth, wanted = 0, -1
        if tree.nodes.num_edges[ROOT]:
            if not self._begun:
                self._begin_root()
            if self._gumbel:
                wanted = self._schedule[self._simulations]
        while True:
            depth, node, edge, action = tree.descend(depth, wanted, self._gumbel, self._root_columns, self._settings)
            wanted = -1
            if node < 0:
                node = self._add_child(depth, edge, action)
            nodes = tree.nodes
            if nodes.actor[node] == CHANCE:
                depth = self._follow_chance(depth)
            elif nodes.solved[node] or not nodes.num_edges[node]:
                return depth, node

    def _begin_root(self) -> None:
        """Draw the noise of the root: Gumbel's for the order of its actions, Dirichlet's for PUCT's priors."""
        tree, config = self._tree, self._config
        self._begun = True
        part = tree.edges_of(ROOT)
        count = part.stop - part.start
        noise, prior = np.zeros(count), tree.edges.prior[part].copy()
        if self._gumbel:
            noise = self._temperature * self._draw.gumbel(size=count)
            self._schedule = visit_schedule(min(config.considered_actions, count), self._budget)
        elif self._dirichlet:
            drawn = self._draw.dirichlet(np.full(count, config.noise_total / count))
            prior[:] = (1 - config.noise_share) * prior + config.noise_share * drawn
        self._root = Root(noise, np.zeros(count, np.int32), prior)
        self._root_columns = tuple(self._root)

    def _scores(self, among: NDArray[np.bool_]) -> NDArray[np.float64]:
        """g + logits + sigma(Q) of the root's actions, -inf of those not `among`."""
        return np.where(among, self._root.noise + self._tree.improved_logits(ROOT, self._settings), -np.inf)

    def _add_child(self, depth: int, edge: int, action: int) -> int:
        """Put a node behind the edge before the path's end at `depth`."""
        tree = self._tree
        parent = int(tree.path.nodes[depth - 1])
        node = self._add(tree.games[parent].after(action), tree.moves[parent] + 1)
        tree.edges.child[edge] = tree.path.nodes[depth] = node
        return node

    def _follow_chance(self, depth: int) -> int:
        """Draw the event of the chance node at `depth` of the path. Returns the depth of its child."""
        tree = self._tree
        node = int(tree.path.nodes[depth])
        event = tree.games[node].draw_chance(self._chance)
        child = tree.child_at(node, event)
        if child < 0:
            game = tree.games[node].clone()
            game.apply({CHANCE: event})
            child = self._add(position_of(game), tree.moves[node] + 1)
            tree.add_event(node, event, child)
        tree.path.edges[depth] = NO_EDGE
        tree.path.nodes[depth + 1] = child
        return depth + 1

    def _add(self, position: Position, moves: int) -> int:
        """The node of this position, new unless an equal one is known. Raises ConfigError where several seats act."""
        tree = self._tree
        game, acting = position.game, position.acting
        if not acting:
            return tree.add_node(game, OVER, moves, outcome_of(game.learned_returns(), self._config))
        actor = acting[0]
        if len(acting) > 1:
            raise ConfigError(
                f"Search needs games in which one seat acts at a time; in {game.spec.name} the seats {list(acting)} "
                "act at once. Train this game without search."
            )
        if actor == CHANCE:
            return tree.add_node(game, CHANCE, moves)
        shown = self._show(position, actor)
        key = shown[-1]
        if self._config.transpositions and (known := tree.node_at(moves, key)) >= 0:
            return known
        node = tree.add_node(game, actor, moves)
        tree.add_position(node, key)
        self._fresh = shown
        return node

    def _show(self, position: Position, actor: int) -> _Shown:
        """What the network is asked about a position."""
        game, actions, observations = position.game, position.actions, position.observation[None]
        if self.seats > 2:
            observations = np.stack([game.observation(seat) for seat in range(self.seats)])
        return actor, actions, observations, position_key(actor, actions, observations)

    def _expand(self, leaf: Leaf, evaluation: CachedEvaluation, logits: NDArray[np.float32]) -> None:
        priors, values = evaluation
        self._tree.expand(leaf.node, leaf.depth, leaf.actions, priors, logits, values)
        if leaf.depth:  # the root's own evaluation is no simulation
            self._simulations += 1

    def _back_up(self, depth: int, values: NDArray[np.float64]) -> None:
        self._tree.back_up(depth, values)
        if depth:  # the root's own evaluation is no simulation
            self._simulations += 1

    def _playable(self) -> NDArray[np.bool_]:
        """bool [K]: actions of the root that are not proven to be worse than another."""
        nodes, edges, part = self._tree.nodes, self._tree.edges, self._tree.edges_of(ROOT)
        if not nodes.solved[ROOT]:
            return ~edges.closed[part]
        children = edges.child[part]
        exact = np.where((children >= 0) & nodes.solved[children], nodes.estimate[children, nodes.actor[ROOT]], -np.inf)
        return np.asarray(exact == exact.max())

    def _place_by_score(self, playable: NDArray[np.bool_]) -> int:
        """The best of the actions that sequential halving kept to its end."""
        if not self._begun:  # solved before this search made a simulation
            return int(np.argmax(playable))
        most = self._root.searched[playable].max()
        return int(np.argmax(self._scores(playable & (self._root.searched == most))))

    def _place_by_visits(self, visits: NDArray[np.float64]) -> int:
        """An action by its visits at the temperature; the most visited at 0, of equals the one of higher value."""
        if self._temperature == 0:
            part = self._tree.edges_of(ROOT)
            means = self._tree.edges.value[part] / np.maximum(self._tree.edges.visits[part], 1)
            return int(np.lexsort((means, visits))[-1])
        weights = (visits / visits.max()) ** (1 / self._temperature)
        return int(self._draw.choice(len(visits), p=weights / weights.sum()))


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    exponents = np.exp(logits - logits.max())
    return exponents / exponents.sum()
