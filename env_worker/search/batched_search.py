"""The searches of many games, advanced together: one request for the leaves of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.client.evaluation import Evaluation
from simul.common.errors import EnvError
from simul.common.protocol.masks import packed_width
from simul.env_worker.search import loops
from simul.env_worker.search.evaluation_cache import CachedEvaluation, logits_of
from simul.env_worker.search.evaluators import LeafEvaluator
from simul.env_worker.search.search import Leaf, Search

ACTION_0 = np.zeros(1, np.int64)  # legal, as is asked, in the row of a seat that does not act


class PendingLeaf(NamedTuple):
    """A leaf in flight, as it is shown to the network.

    Attributes:
        observations: wire dtype [R, D], of the position as it was turned.
        legal: int64 [K], ids of the legal actions there, in the order of the leaf's.
    """

    search: Search
    leaf: Leaf
    observations: NDArray[Any]
    legal: NDArray[np.int64]


class LeafRequest(NamedTuple):
    """The leaves of several searches, as rows for EVALUATE.

    Attributes:
        rows: int64 [L + 1], the row where each leaf begins; acting: int64 [L], the row of the seat that acts.
        actions, first: of all rows, as for `loops.pack_actions`.
        observation: wire dtype [N, D]; mask: uint8 [N, ceil(A / 8)], bits. A row of a seat that does not act allows
            action 0: only its value is read.
    """

    leaves: Sequence[PendingLeaf]
    rows: NDArray[np.int64]
    acting: NDArray[np.int64]
    actions: NDArray[np.int64]
    first: NDArray[np.int64]
    observation: NDArray[Any]
    mask: NDArray[np.uint8]


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
    symmetry = int.from_bytes(leaf.key[:4], "little") % game.symmetries if symmetries and game.symmetries > 1 else 0
    if symmetry == 0:
        return PendingLeaf(search, leaf, leaf.observations, leaf.actions)
    turned = [game.turn_observation(observation, symmetry) for observation in leaf.observations]
    shown = turned[0][None] if len(turned) == 1 else np.stack(turned)
    return PendingLeaf(search, leaf, shown, game.turn_actions(symmetry)[leaf.actions])


def leaf_request(leaves: Sequence[PendingLeaf]) -> LeafRequest:
    """One request for these leaves, at least one. Raises EnvError where a game breaks its own spec."""
    legal: list[NDArray[np.int64]] = []
    for each in leaves:
        seats = len(each.observations)
        legal += [each.legal if row == _acting_row(each.leaf) else ACTION_0 for row in range(seats)]
    rows = _starts([len(each.observations) for each in leaves])
    acting = rows[:-1] + np.array([_acting_row(each.leaf) for each in leaves])
    actions, first = np.concatenate(legal, dtype=np.int64), _starts([len(each) for each in legal])
    num_actions = leaves[0].search.num_actions
    mask = np.zeros((len(legal), packed_width(num_actions)), np.uint8)
    if (wrong := loops.pack_actions(actions, first, num_actions, mask)) >= 0:
        found = actions[first[wrong] : first[wrong + 1]].tolist()
        raise EnvError(f"legal actions are {found}; expected ids from 0 to {num_actions - 1}, each once")
    observation = np.concatenate([each.observations for each in leaves])
    return LeafRequest(leaves, rows, acting, actions, first, observation, mask)


def take_answers(request: LeafRequest, evaluation: Evaluation) -> dict[Search, tuple[str, str]]:
    """Give each leaf its evaluation. Returns the searches that had a row refused: the error's code and message."""
    refused: dict[Search, tuple[str, str]] = {}
    priors = np.empty(len(request.actions), np.float32)
    loops.priors_by_action(evaluation.legal_priors, request.actions, request.first, request.mask, priors)
    logits, values = logits_of(priors), _seat_values(request, evaluation.value)
    starts, stops = request.first[request.acting].tolist(), request.first[request.acting + 1].tolist()
    versions, rows = evaluation.policy_version[request.acting].tolist(), request.rows.tolist()
    for at, (each, start, stop) in enumerate(zip(request.leaves, starts, stops)):
        asked = range(rows[at], rows[at + 1])
        if evaluation.errors and (failed := [row for row in asked if row in evaluation.errors]):
            refused[each.search] = evaluation.errors[failed[0]]
            continue
        answer = CachedEvaluation(priors[start:stop], values[at])
        each.search.take(each.leaf, versions[at], answer, logits[start:stop])
    return refused


def run_searches(searches: Sequence[Search], evaluator: LeafEvaluator, symmetries: bool = True) -> None:
    """Run searches that have begun to their end, one simulation of each at a time.

    Raises:
        RuntimeError: the evaluator refused a row.
    """
    while leaves := [leaf for search in searches if (leaf := next_leaf(search, symmetries)) is not None]:
        request = leaf_request(leaves)
        number = evaluator.submit(request.observation, request.mask, searches[0].num_actions)
        answers: list[Evaluation] = []
        while not answers:
            answers = [answer for answer in evaluator.poll() if answer.id == number]
        if refused := take_answers(request, answers[0]):
            raise RuntimeError(f"the evaluation of a leaf was refused: {': '.join(next(iter(refused.values())))}")


def _acting_row(leaf: Leaf) -> int:
    """The row of the seat that acts, of those that are asked for the leaf."""
    return leaf.actor if len(leaf.observations) > 1 else 0


def _starts(counts: Sequence[int]) -> NDArray[np.int64]:
    """int64 [N + 1]: where each begins, and the end of the last."""
    return np.cumsum([0, *counts])


def _seat_values(request: LeafRequest, answers: NDArray[np.float32]) -> NDArray[np.float64]:
    """float64 [L, seats]: what each leaf is worth to each seat, by the values [N] of all rows.

    One or two seats: the row is of the seat that acts; of two, the other has its negative. More: a row of each seat.
    """
    own = answers.astype(np.float64)
    seats = request.leaves[0].search.seats
    if seats != 2:
        return own.reshape(-1, seats)
    second = np.array([each.leaf.actor == 1 for each in request.leaves])
    first = np.where(second, -own, own)
    return np.stack((first, -first), axis=1)
