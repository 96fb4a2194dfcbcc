"""Searches for tests: run to their end with evaluators whose answers are known."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.client.evaluation import Evaluation, unanswered
from simul.common.config.search import SearchConfig
from simul.common.protocol.masks import no_bits_beyond, unpack_masks
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.search.batched_search import run_searches
from simul.env_worker.search.evaluation_cache import EvaluationCache
from simul.env_worker.search.evaluators import LeafEvaluator, UniformEvaluator
from simul.env_worker.search.search import Search

Network = Callable[[NDArray[Any], NDArray[np.bool_]], tuple[NDArray[np.float32], float]]


class RowEvaluator:
    """Answers each row by a function of observation [D] and mask [A]: (priors [A], value). Counts the rows."""

    def __init__(self, network: Network, version: int = 0) -> None:
        self.version = version
        self.rows = 0
        self.requests: list[int] = []  # rows of each
        self._network = network
        self._answers: list[Evaluation] = []

    def submit(self, observation: NDArray[Any], mask: NDArray[np.uint8], num_actions: int) -> int:
        self._answers.append(self.answer(len(self.requests), observation, mask, num_actions))
        return len(self.requests) - 1

    def poll(self) -> list[Evaluation]:
        answers, self._answers = self._answers, []
        return answers

    def answer(self, number: int, observation: NDArray[Any], mask: NDArray[np.uint8], num_actions: int) -> Evaluation:
        legal = unpack_masks(mask, num_actions) > 0
        assert legal.any(axis=1).all()
        assert no_bits_beyond(mask, num_actions).all()
        rows = [self._network(*row) for row in zip(observation, legal)]
        self.rows += len(rows)
        self.requests.append(len(rows))
        answer = unanswered(number, mask, num_actions)
        answer.legal_priors[:] = np.stack([priors for priors, _ in rows]).astype(np.float32)[legal]
        answer.value[:] = [value for _, value in rows]
        answer.policy_version[:] = self.version
        return answer


def hashed(observation: NDArray[Any], mask: NDArray[np.bool_]) -> tuple[NDArray[np.float32], float]:
    """Priors and a value between -0.8 and 0.8 that only depend on the row, as if by chance."""
    seed = int.from_bytes(hashlib.blake2b(observation.tobytes(), digest_size=8).digest(), "little")
    draw = np.random.default_rng(seed)
    priors = draw.random(len(mask)) * mask
    return (priors / priors.sum()).astype(np.float32), float(draw.uniform(-0.8, 0.8))


def searched(
    game: TurnGame, config: SearchConfig, evaluator: LeafEvaluator | None = None, *, seed: int = 0, full: bool = True,
    move: int = 0, noise: bool = False, cache: EvaluationCache | None = None,
) -> Search:  # fmt: skip
    """A search of the position that has come to its end."""
    cache = EvaluationCache(config.cache_positions) if cache is None else cache
    search = Search(config, game.spec, np.random.default_rng(seed), cache)
    search.begin(game, full=full, move=move, noise=noise)
    run_searches([search], evaluator or UniformEvaluator(), config.symmetries)
    return search


def after(game: TurnGame, *actions: int) -> TurnGame:
    """The position after these actions of the seats in turn."""
    game = game.clone()
    for action in actions:
        game.apply({game.acting()[0]: action})
    return game
