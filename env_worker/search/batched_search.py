"""The searches of many games, advanced together: one request for the leaves of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.client.evaluation import Evaluation
from simul.env_worker.search.evaluation_cache import CachedEvaluation
from simul.env_worker.search.evaluators import Evaluator
from simul.env_worker.search.search import Leaf, Search


class PendingLeaf(NamedTuple):
    """A leaf in flight, as it is shown to the network.

    Attributes:
        observations: wire dtype [R, D], of the position as it was turned.
        legal: intp [K], ids of the legal actions there.
    """

    search: Search
    leaf: Leaf
    observations: NDArray[Any]
    legal: NDArray[np.intp]


class LeafRequest(NamedTuple):
    """The leaves of several searches, as rows for EVALUATE.

    Attributes:
        first: the row where each leaf begins.
        observation: wire dtype [N, D]; mask: bool [N, A], True = legal. A row of a seat that does not act allows
            action 0: only its value is read.
    """

    leaves: Sequence[PendingLeaf]
    first: Sequence[int]
    observation: NDArray[Any]
    mask: NDArray[np.bool_]


def next_leaf(search: Search, symmetries: bool) -> PendingLeaf | None:
    """Advance a search to its next leaf; None where it is over.

    Args:
        symmetries: show each position in one of its game's symmetries, drawn by the position's key; a position is
            always shown alike, so its evaluation does not depend on which game asked first.
    """
    leaf = search.select()
    if leaf is None:
        return None
    game = search.tree.games[leaf.node]
    symmetry = int.from_bytes(leaf.key[:4], "little") % game.symmetries if symmetries else 0
    if symmetry == 0:
        return PendingLeaf(search, leaf, leaf.observations, leaf.actions)
    turned = np.stack([game.turn_observation(observation, symmetry) for observation in leaf.observations])
    return PendingLeaf(search, leaf, turned, game.turn_actions(symmetry)[leaf.actions])


def leaf_request(leaves: Sequence[PendingLeaf]) -> LeafRequest:
    """One request for these leaves, at least one."""
    first = np.cumsum([0] + [len(each.observations) for each in leaves]).tolist()
    mask = np.zeros((first[-1], leaves[0].search.num_actions), np.bool_)
    for each, row in zip(leaves, first):
        mask[row : row + len(each.observations), 0] = True
        acting = row + _acting_row(each.leaf)
        mask[acting, 0] = False
        mask[acting, each.legal] = True
    return LeafRequest(leaves, first[:-1], np.concatenate([each.observations for each in leaves]), mask)


def take_answers(request: LeafRequest, evaluation: Evaluation) -> dict[Search, str]:
    """Give each leaf its evaluation. Returns the searches that had a row refused, each with the error's code."""
    refused: dict[Search, str] = {}
    for each, row in zip(request.leaves, request.first):
        rows = range(row, row + len(each.observations))
        if failed := [row for row in rows if row in evaluation.errors]:
            refused[each.search] = evaluation.errors[failed[0]][0]
            continue
        acting = row + _acting_row(each.leaf)
        values = evaluation.value[rows.start : rows.stop].copy()
        answer = CachedEvaluation(evaluation.priors[acting, each.legal], values)
        each.search.take(each.leaf, int(evaluation.policy_version[acting]), answer)
    return refused


def run_searches(searches: Sequence[Search], evaluator: Evaluator, symmetries: bool = True) -> None:
    """Run searches that have begun to their end, one simulation of each at a time.

    Raises:
        RuntimeError: the evaluator refused a row.
    """
    while leaves := [leaf for search in searches if (leaf := next_leaf(search, symmetries)) is not None]:
        request = leaf_request(leaves)
        number = evaluator.submit(request.observation, request.mask)
        answers: list[Evaluation] = []
        while not answers:
            answers = [answer for answer in evaluator.poll() if answer.id == number]
        if refused := take_answers(request, answers[0]):
            raise RuntimeError(f"the evaluation of a leaf was refused: {next(iter(refused.values()))}")


def _acting_row(leaf: Leaf) -> int:
    """The row of the seat that acts, of those that are asked for the leaf."""
    return leaf.actor if len(leaf.observations) > 1 else 0
