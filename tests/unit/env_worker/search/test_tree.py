"""The compiled loops that move whole trees and whole requests, against plain ones."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from simul.common.config.search import SearchConfig
from simul.common.errors import EnvError
from simul.common.protocol.masks import pack_masks, unpack_masks
from simul.env_worker.games.base.turn_game import CHANCE
from simul.env_worker.search import loops
from simul.env_worker.search.tree import Tree
from tests.support.searching import RowEvaluator, hashed, searched
from tests.support.small_games import ConnectFour, Dice, TicTacToe

COLUMNS = ("prior", "logit", "visits", "value", "closed", "action")


def _children(tree: Tree, node: int) -> list[int]:
    if tree.nodes.actor[node] == CHANCE:
        return [child for event in range(64) if (child := tree.child_at(node, event)) >= 0]
    return [int(child) for child in tree.edges.child[tree.edges_of(node)] if child >= 0]


def _below(tree: Tree, root: int) -> list[int]:
    found = [root]
    for node in found:  # grows while it is read
        found += [child for child in dict.fromkeys(_children(tree, node)) if child not in found]
    return found


def _facts(tree: Tree, node: int) -> dict[str, Any]:
    part = tree.edges_of(node)
    of_edges = {f"edge_{name}": getattr(tree.edges, name)[part].tolist() for name in COLUMNS}
    names = ("actor", "visits", "value", "estimate", "solved")
    of_node = {name: getattr(tree.nodes, name)[node].tolist() for name in names}
    return of_edges | of_node | {"game": tree.games[node], "moves": tree.moves[node]}


@pytest.mark.parametrize("game", [ConnectFour, Dice, TicTacToe])
@pytest.mark.parametrize("method", ["gumbel", "puct"])
def test_what_lies_below_a_new_root_is_kept_and_everything_else_dropped(game: type, method: str) -> None:
    config = SearchConfig(method=method, simulations=120)  # type: ignore[arg-type]
    tree = searched(game(), config, RowEvaluator(hashed)).tree
    draw = random.Random(3)
    while below := _below(tree, 0)[1:]:
        root = draw.choice(below)
        kept = _below(tree, root)
        facts = [_facts(tree, node) for node in kept]
        shape = [[kept.index(child) for child in _children(tree, node)] for node in kept]
        tree.reroot(root)
        assert tree.node_count == len(kept)
        assert tree.edge_count == tree.nodes.num_edges[: tree.node_count].sum()
        assert [_facts(tree, node) for node in range(tree.node_count)] == facts
        assert [_children(tree, node) for node in range(tree.node_count)] == shape
        assert not tree.nodes.num_edges[tree.node_count :].any()
        assert not tree.nodes.visits[tree.node_count :].any()


def test_priors_reach_their_actions_whatever_symmetry_was_shown() -> None:
    draw = np.random.default_rng(4)
    num_actions, rows = 77, 20
    legal = [np.flatnonzero(draw.random(num_actions) < 0.3) for _ in range(rows)]
    legal[5] = np.array([0, 76])
    shown = [actions if row % 2 else draw.permutation(num_actions)[actions] for row, actions in enumerate(legal)]
    actions, first = np.concatenate(shown), np.cumsum([0, *map(len, shown)])
    bits = np.zeros((rows, 10), np.uint8)
    assert loops.pack_actions(actions, first, num_actions, bits) == -1
    dense = np.zeros((rows, num_actions), np.uint8)
    for row, each in enumerate(shown):
        dense[row, each] = 1
    assert (bits == pack_masks(dense)).all()
    by_id = np.where(unpack_masks(bits, num_actions) > 0, draw.random(dense.shape, np.float32), 0)
    found = np.empty(len(actions), np.float32)
    loops.priors_by_action(by_id[dense > 0], actions, first, bits, found)
    assert found.tolist() == np.concatenate([by_id[row, each] for row, each in enumerate(shown)]).tolist()


@pytest.mark.parametrize("wrong", [[0, 9], [-1, 3], [4, 4]])
def test_actions_that_are_none_or_there_twice_are_said_before_they_are_asked(wrong: list[int]) -> None:
    class Broken(TicTacToe):
        def legal_actions(self, seat: int) -> np.ndarray:
            return np.array(wrong)

    with pytest.raises(EnvError, match=r"expected ids from 0 to 8, each once"):
        searched(Broken(), SearchConfig(simulations=4, symmetries=False))
