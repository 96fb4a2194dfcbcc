"""One game's search: values, chance, noise, budgets, the tree that is kept."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from simul.common.config.search import SearchConfig
from simul.common.errors import ConfigError
from simul.env_worker.search.batched_search import run_searches
from simul.env_worker.search.evaluation_cache import EvaluationCache
from simul.env_worker.search.outcomes import outcome_of
from simul.env_worker.search.search import ROOT, Search
from simul.env_worker.search.tree import Tree
from tests.support.searching import RowEvaluator, after, hashed, searched
from tests.support.small_games import (
    Board,
    ConnectFour,
    Dice,
    ThreeInTurn,
    TicTacToe,
    best_actions,
    tic_tac_toe_positions,
)

METHODS = ("puct", "gumbel")
PLAIN = SearchConfig(method="puct", symmetries=False, transpositions=False)


def _config(method: str, **settings: Any) -> SearchConfig:
    return SearchConfig(method=method, **settings)  # type: ignore[arg-type]


def _wins_in(game: Board, moves: int) -> bool:
    """The seat that acts wins with at most so many moves of its own, whatever the other does."""
    for action in game.legal_actions(game.turn):
        child = after(game, int(action))
        if child.winner >= 0:
            return True
        replies = [after(child, int(reply)) for reply in child.legal_actions(child.turn)] if child.acting() else []
        if moves > 1 and replies and all(reply.acting() and _wins_in(reply, moves - 1) for reply in replies):
            return True
    return False


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("moves", [1, 2, 3])
def test_a_forced_win_is_found_and_belongs_to_the_seat_that_acts(method: str, seat: int, moves: int) -> None:
    game = next(
        game
        for game in tic_tac_toe_positions()
        if game.turn == seat and _wins_in(game, moves) and not (moves > 1 and _wins_in(game, moves - 1))
    )
    result = searched(game, _config(method, simulations=2000)).result()
    assert result.action in best_actions(game)
    assert result.value[seat] == 1.0
    assert result.value[1 - seat] == -1.0


def test_the_value_of_a_leaf_changes_sign_on_its_way_to_the_root() -> None:
    values = iter([0.25, 0.5])  # of the root, and of the position after the first move, each for the seat that acts
    evaluator = RowEvaluator(lambda observation, mask: (mask / mask.sum(), next(values)))
    search = searched(ConnectFour(), msgspec.structs.replace(PLAIN, simulations=1), evaluator)
    tree = search.tree
    assert tree.nodes.estimate[ROOT].tolist() == [0.25, -0.25]
    edge = int(np.flatnonzero(tree.edges.visits[tree.edges_of(ROOT)])[0])
    assert tree.edges.value[edge] == -0.5
    assert search.result().value.tolist() == [-0.125, 0.125]


class Misere(TicTacToe):
    """Three in a row lose."""

    def returns(self) -> list[float]:
        return [-worth for worth in super().returns()]


@pytest.mark.parametrize("noise", [False, True])
def test_where_all_that_was_visited_loses_and_no_other_action_has_a_prior_one_of_the_others_is_played(noise) -> None:
    sure = RowEvaluator(lambda observation, mask: (np.eye(len(mask))[2], 0.0))
    search = searched(
        after(Misere(), 0, 3, 1, 5), msgspec.structs.replace(PLAIN, simulations=1, noise_share=0.0), sure, noise=noise
    )
    result = search.result()
    assert result.action in (4, 6, 7, 8)
    assert result.actions.tolist() == [4, 6, 7, 8]
    assert np.allclose(result.policy, 0.25)


@pytest.mark.parametrize("method", METHODS)
def test_three_seats_each_maximise_their_own_value(method: str) -> None:
    search = searched(ThreeInTurn(), _config(method, simulations=1000))
    tree = search.tree
    assert search.result().action == 1
    chosen = int(tree.edges.child[tree.edges_of(ROOT)][1])
    assert (tree.nodes.value[chosen] / tree.nodes.visits[chosen]).tolist() == pytest.approx(ThreeInTurn.value, abs=0.1)


def test_with_three_seats_each_is_asked_for_its_value_and_the_acting_one_for_the_policy() -> None:
    asked = []

    def network(observation: Any, mask: Any) -> tuple[Any, float]:
        asked.append((int(observation[0]), mask.tolist()))
        return np.array([0.25, 0.75]) if mask.all() else mask, float(observation[0]) / 4

    search = searched(after(ThreeInTurn(), 0), _config("puct", simulations=1), RowEvaluator(network))
    assert asked[:3] == [(0, [True, False]), (1, [True, True]), (2, [True, False])]
    assert search.tree.nodes.estimate[ROOT].tolist() == [0.0, 0.25, 0.5]
    assert search.tree.edges.prior[search.tree.edges_of(ROOT)].tolist() == [0.25, 0.75]


@pytest.mark.parametrize("method", METHODS)
def test_chance_is_averaged(method: str) -> None:
    search = searched(Dice(), _config(method, simulations=2000))
    tree = search.tree
    part = tree.edges_of(ROOT)
    means = tree.edges.value[part] / tree.edges.visits[part]
    assert search.result().action == 1
    assert means[0] == pytest.approx(0.1)
    assert means[1] == pytest.approx(0.4, abs=0.1)  # of at least 1,000 rolls, each with deviation 0.8


def test_a_full_search_makes_its_simulations_and_a_cheap_one_few_and_no_target() -> None:
    for method in METHODS:
        config = _config(method, simulations=40, cheap_simulations=7)
        full = searched(ConnectFour(), config, RowEvaluator(hashed)).result()
        cheap = searched(ConnectFour(), config, RowEvaluator(hashed), full=False).result()
        assert (full.simulations, cheap.simulations) == (40, 7)
        assert full.policy.sum() == pytest.approx(1.0)
        assert set(full.actions.tolist()) <= set(range(7))
        assert len(cheap.actions) == len(cheap.policy) == 0


def test_puct_targets_are_visits_and_gumbel_targets_know_unvisited_actions() -> None:
    search = searched(ConnectFour(), _config("puct", simulations=30), RowEvaluator(hashed))
    visits = search.tree.edges.visits[search.tree.edges_of(ROOT)]
    assert search.result().policy == pytest.approx(visits[visits > 0] / 30)
    few = _config("gumbel", simulations=4, considered_actions=2, value_scale=0.01)
    search = searched(ConnectFour(), few, RowEvaluator(hashed))
    assert (search.tree.edges.visits[search.tree.edges_of(ROOT)] > 0).sum() == 2
    assert len(search.result().actions) == 7


def test_gumbel_visits_at_the_root_are_those_of_sequential_halving() -> None:
    search = searched(ConnectFour(), _config("gumbel", simulations=32, considered_actions=4), RowEvaluator(hashed))
    visits = search.tree.edges.visits[search.tree.edges_of(ROOT)]
    assert sorted(visits.tolist()) == [0, 0, 0, 4, 4, 12, 12]


def test_one_legal_action_needs_no_search() -> None:
    game = next(game for game in tic_tac_toe_positions() if len(game.legal_actions(game.turn)) == 1)
    evaluator = RowEvaluator(hashed)
    result = searched(game, SearchConfig(), evaluator).result()
    assert result.action == game.legal_actions(game.turn)[0]
    assert (result.simulations, evaluator.rows, len(result.actions)) == (0, 0, 0)


@pytest.mark.parametrize("method", METHODS)
def test_an_action_that_is_proven_to_be_lost_is_not_played_although_no_other_was_visited(method: str) -> None:
    class Trap(Dice):
        def acting(self) -> tuple[int, ...]:
            return (0,) if self.chosen < 0 else ()

        def returns(self) -> tuple[float]:
            return (-1.0 if self.chosen == 0 else 0.5,)

    evaluator = RowEvaluator(lambda observation, mask: (np.array([0.9, 0.03, 0.07]), 0.0))
    search = searched(Trap(), _config(method, simulations=1), evaluator)
    assert search.tree.edges.visits[search.tree.edges_of(ROOT)].tolist() == [1, 0, 0]
    result = search.result()
    assert result.action == 2
    assert result.actions.tolist() == [1, 2]
    assert result.policy == pytest.approx([0.3, 0.7])


def test_a_kept_tree_equals_a_fresh_search_of_as_many_visits() -> None:
    config = msgspec.structs.replace(PLAIN, simulations=200)
    game = ConnectFour()
    kept = searched(game, config, RowEvaluator(hashed))
    moved = after(game, kept.result().action)
    kept.begin(moved, full=True, move=1, noise=False)
    visits = int(kept.tree.nodes.visits[ROOT])
    assert visits > 20
    fresh = searched(moved, msgspec.structs.replace(config, simulations=visits - 1), RowEvaluator(hashed))
    _assert_equal_trees(kept, fresh)
    run_searches([kept], RowEvaluator(hashed), symmetries=False)
    assert kept.result().simulations == 200 - (visits - 1)
    _assert_equal_trees(kept, searched(moved, config, RowEvaluator(hashed)))


def test_a_tree_is_kept_over_moves_of_the_other_seat_and_dropped_where_it_does_not_know_the_position() -> None:
    config = msgspec.structs.replace(PLAIN, simulations=300)
    kept = searched(ConnectFour(), config, RowEvaluator(hashed))
    kept.begin(after(ConnectFour(), 3, 3), full=True, move=1, noise=False)
    assert kept.tree.nodes.visits[ROOT] > 1
    kept.begin(after(ConnectFour(), 0, 0, 0, 0, 0, 0, 1, 1), full=True, move=2, noise=False)
    assert kept.tree.node_count == 1
    without = searched(ConnectFour(), msgspec.structs.replace(config, reuse_tree=False), RowEvaluator(hashed))
    without.begin(after(ConnectFour(), 3), full=True, move=1, noise=False)
    assert without.tree.node_count == 1


def _assert_equal_trees(one: Search, other: Search) -> None:
    """The same nodes below the root, in depth-first order of their edges."""
    pairs = [(ROOT, ROOT)]
    while pairs:
        a, b = pairs.pop()
        assert one.tree.nodes.visits[a] == other.tree.nodes.visits[b]
        assert one.tree.nodes.value[a].tolist() == pytest.approx(other.tree.nodes.value[b].tolist())
        mine, theirs = one.tree.edges_of(a), other.tree.edges_of(b)
        for column in ("action", "visits", "prior"):
            assert getattr(one.tree.edges, column)[mine].tolist() == getattr(other.tree.edges, column)[theirs].tolist()
        children = list(zip(one.tree.edges.child[mine].tolist(), other.tree.edges.child[theirs].tolist()))
        assert all((c < 0) == (d < 0) for c, d in children)
        pairs += [(c, d) for c, d in children if c >= 0]


def test_equal_positions_are_one_node() -> None:
    game = after(TicTacToe(), 4)
    shared = searched(game, _config("puct", simulations=400, symmetries=False), RowEvaluator(hashed)).tree
    apart = searched(game, msgspec.structs.replace(PLAIN, simulations=400), RowEvaluator(hashed)).tree

    def keys(tree: Tree) -> list[Any]:
        expanded = [node for node in range(tree.node_count) if tree.nodes.num_edges[node]]
        return [(tree.moves[node], tuple(tree.games[node].own)) for node in expanded]

    assert len(keys(shared)) == len(set(keys(shared)))
    assert len(keys(apart)) > len(set(keys(apart)))


def test_noise_is_at_the_root_of_a_full_search_alone() -> None:
    config = _config("puct", simulations=50, temperature=0.0, noise_share=0.9, symmetries=False)

    def visits(seed: int, **flags: Any) -> list[int]:
        search = searched(after(ConnectFour(), 3), config, seed=seed, **flags)
        tree = search.tree
        priors = [tree.edges.prior[tree.edges_of(node)] for node in range(tree.node_count)]
        assert all(np.allclose(each, 1 / max(len(each), 1)) for each in priors)
        return tree.edges.visits[tree.edges_of(ROOT)].tolist()

    assert visits(1, noise=True) != visits(2, noise=True)
    assert visits(1, noise=False) == visits(2, noise=False)
    assert visits(1, noise=True, full=False) == visits(2, noise=True, full=False)


@pytest.mark.parametrize("method", METHODS)
def test_the_temperature_is_for_the_first_moves(method: str) -> None:
    config = _config(method, simulations=16, temperature=3.0, temperature_moves=4, noise_share=0.0)

    def played(move: int) -> set[int]:
        return {searched(ConnectFour(), config, seed=seed, move=move, noise=True).result().action for seed in range(12)}

    assert len(played(3)) > 1
    assert len(played(4)) == 1


def test_a_known_position_is_not_asked_again_until_the_weights_change() -> None:
    cache, evaluator = EvaluationCache(1000), RowEvaluator(hashed)
    config = _config("puct", simulations=60)
    first = searched(ConnectFour(), config, evaluator, cache=cache).result()
    asked = evaluator.rows
    again = searched(ConnectFour(), config, evaluator, cache=cache).result()
    assert evaluator.rows == asked
    assert again.policy.tolist() == first.policy.tolist()
    evaluator.version = 1
    searched(after(ConnectFour(), 0), config, evaluator, cache=cache)  # the first answer of the new version
    asked = evaluator.rows
    searched(ConnectFour(), config, evaluator, cache=cache)
    assert evaluator.rows > asked


def test_symmetries_change_nothing_for_a_network_that_has_them() -> None:
    def network(observation: Any, mask: Any) -> tuple[Any, float]:
        own = observation[:9].reshape(3, 3).astype(float)
        weight = (1 + own.sum(axis=1, keepdims=True) + np.array([0.5, 2, 0.5])).ravel() * mask  # columns 0 and 2 alike
        return weight / weight.sum(), float(own[:, 1].sum() / 4)

    for method in METHODS:
        turned, straight = (
            searched(TicTacToe(), _config(method, simulations=80, symmetries=on), RowEvaluator(network))
            for on in (True, False)
        )
        assert turned.result().policy == pytest.approx(straight.result().policy, abs=1e-5)


def test_positions_are_shown_in_several_symmetries() -> None:
    shown = []

    def network(observation: Any, mask: Any) -> tuple[Any, float]:
        shown.append(observation[:18].reshape(2, 3, 3)[0, :, 0].sum())
        return mask / mask.sum(), 0.0

    game = after(TicTacToe(), 0, 4)  # seat 0 owns the left column's first square
    search = searched(game, _config("puct", simulations=60, symmetries=True), RowEvaluator(network))
    assert search.tree.node_count > 10
    assert 0 < np.mean(np.array(shown) == 0) < 1


def test_seats_that_act_at_once_are_refused() -> None:
    class AtOnce(TicTacToe):
        def acting(self) -> tuple[int, ...]:
            return (0, 1)

    with pytest.raises(ConfigError, match="one seat acts at a time; in tic_tac_toe the seats"):
        searched(AtOnce(), SearchConfig())


@pytest.mark.parametrize(
    ("settings", "returns", "values"),
    [
        ({"return_scale": 10.0}, (5.0, -20.0), [0.5, -1.0]),
        ({"outcome": "ranks"}, (7.0, 7.0, 3.0), [0.5, 0.5, -1.0]),
        ({"outcome": "ranks"}, (1.0, 3.0), [-1.0, 1.0]),
    ],
)
def test_returns_are_brought_to_values(
    settings: dict[str, Any], returns: tuple[float, ...], values: list[float]
) -> None:
    assert outcome_of(returns, SearchConfig(**settings)).tolist() == values
