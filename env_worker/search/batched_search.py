"""The searches of many games, advanced together: one request for the leaves of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.client.evaluation import Evaluation
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.search.evaluation_cache import CachedEvaluation
from simul.env_worker.search.evaluators import Evaluator
from simul.env_worker.search.search import Leaf, Search


class PendingLeaf(NamedTuple):
    """A leaf in flight. `legal`: intp [K], ids of its legal actions in the position as it was turned."""

    search: Search
    leaf: Leaf
    legal: NDArray[np.intp]
    rows: slice

    @property
    def acting_row(self) -> int:
        """Row of the seat that acts."""
        return int(self.rows.start) + (self.leaf.actor if len(self.leaf.observations) > 1 else 0)


class LeafRequest(NamedTuple):
    """The leaves of several searches, as rows for EVALUATE.

    Attributes:
        observation: wire dtype [N, D]; mask: bool [N, A], True = legal. A row of a seat that does not act allows
            action 0: only its value is read.
    """

    leaves: Sequence[PendingLeaf]
    observation: NDArray[Any]
    mask: NDArray[np.bool_]


def select_leaves(searches: Sequence[Search], symmetries: bool) -> LeafRequest | None:
    """Advance each search to its next leaf. None where all of them are over.

    Args:
        symmetries: show each position in one of its game's symmetries, drawn by the position's key; a position is
            always shown alike, so its evaluation does not depend on which game asked first.
    """
    pending: list[PendingLeaf] = []
    observations: list[NDArray[Any]] = []
    rows = 0
    for search in searches:
        leaf = search.select()
        if leaf is None:
            continue
        observed, legal = (
            _turned(search.tree.games[leaf.node], leaf) if symmetries else (leaf.observations, leaf.actions)
        )
        observations.append(observed)
        pending.append(PendingLeaf(search, leaf, legal, slice(rows, rows + len(observed))))
        rows += len(observed)
    if not pending:
        return None
    mask = np.zeros((rows, searches[0].num_actions), np.bool_)
    for each in pending:
        mask[each.rows, 0] = True
        mask[each.acting_row, 0] = False
        mask[each.acting_row, each.legal] = True
    return LeafRequest(pending, np.concatenate(observations), mask)


def take_answers(request: LeafRequest, evaluation: Evaluation) -> list[tuple[Search, str]]:
    """Give each leaf its evaluation. Returns the searches whose rows were refused, each with the error's code."""
    refused: list[tuple[Search, str]] = []
    for each in request.leaves:
        rows = range(each.rows.start, each.rows.stop)
        if failed := [row for row in rows if row in evaluation.errors]:
            refused.append((each.search, evaluation.errors[failed[0]][0]))
            continue
        answer = CachedEvaluation(evaluation.priors[each.acting_row, each.legal], evaluation.value[each.rows].copy())
        each.search.take(each.leaf, int(evaluation.policy_version[each.acting_row]), answer)
    return refused


def run_searches(searches: Sequence[Search], evaluator: Evaluator, symmetries: bool = True) -> None:
    """Run searches that have begun to their end, one request for all of them at a time.

    Raises:
        RuntimeError: the evaluator refused a row.
    """
    while request := select_leaves(searches, symmetries):
        number = evaluator.submit(request.observation, request.mask)
        answers = []
        while not answers:
            answers = [answer for answer in evaluator.poll() if answer.id == number]
        if refused := take_answers(request, answers[0]):
            raise RuntimeError(f"the evaluation of a leaf was refused: {refused[0][1]}")


def _turned(game: TurnGame, leaf: Leaf) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Observations [R, D] and ids of the legal actions [K] in the symmetry that the position's key draws."""
    symmetry = int.from_bytes(leaf.key[:4], "little") % game.symmetries
    if symmetry == 0:
        return leaf.observations, leaf.actions
    turned = np.stack([game.turn_observation(observation, symmetry) for observation in leaf.observations])
    return turned, game.turn_actions(symmetry)[leaf.actions]
