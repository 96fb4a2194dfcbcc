"""Scripted players. They read what their seat knows: the open boards, its own cards and discards."""

from __future__ import annotations

import random
from typing import cast

import numpy as np

from simul.common.errors import ConfigError
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.games.ofc.actions import NUM_ACTIONS
from simul.env_worker.games.ofc.cards import Cards
from simul.env_worker.games.ofc.endgame import before_last_worths
from simul.env_worker.games.ofc.evaluator import FOUL
from simul.env_worker.games.ofc.hand import UNSEEN, locate
from simul.env_worker.games.ofc.heuristic import (
    FANTASY,
    LIKELY_FANTASY,
    WEIGHTS,
    Weights,
    count_live,
    estimates,
)
from simul.env_worker.games.ofc.random_draws import draws_of
from simul.env_worker.games.ofc.rollouts import rollout_scores
from simul.env_worker.games.ofc.rules import Rules
from simul.env_worker.games.ofc.table import OfcGame

BEFORE_LAST = 3  # street 4


def unseen_cards(game: OfcGame, seat: int) -> Cards:
    """int8 [K], ascending: cards whose place the seat does not know."""
    hand, where = game.hand, np.empty(54, np.int8)
    locate(hand.board, hand.discards, hand.held, hand.holding, hand.fantasy, seat, where)
    return np.flatnonzero(where[: game.rules.deck] == UNSEEN).astype(np.int8)


def _weights(rules: Rules) -> Weights:
    """The heuristic's, without Fantasyland where the rules have none."""
    if rules.fantasyland:
        return WEIGHTS
    weights = WEIGHTS.copy()
    weights[[FANTASY, LIKELY_FANTASY]] = 0.0
    return weights


class RulePlayer:
    """Places by the heuristic on streets 1 to 3 and exactly on the last two.

    On street 4 it takes, of the actions that no draw can make foul, the best; where there is none, the best of all, a
    foul counted as its points. On street 5 it fouls only where every action does.
    """

    def choose(self, game: TurnGame, seat: int, draw: random.Random) -> int:
        table = cast(OfcGame, game)
        hand, street = table.hand, table.street
        unseen, weights = unseen_cards(table, seat), _weights(table.rules)
        worths = np.empty(NUM_ACTIONS)
        if street != BEFORE_LAST:
            live = np.empty(18, np.int64)
            count_live(unseen, live)
            estimates(hand.board[seat], hand.filled[seat], hand.held, street, live, len(unseen), weights, worths)
            return int(worths.argmax())
        fouls = np.empty(NUM_ACTIONS)
        fouled = float(FOUL * (table.rules.players - 1))
        before_last_worths(
            hand.board[seat], hand.filled[seat], hand.held, unseen, weights[FANTASY], fouled, worths, fouls
        )
        if fouls.min() == 0:
            worths[fouls > 0] = -np.inf
        return int(worths.argmax())


class MonteCarloPlayer:
    """Plays each candidate out against random cards and takes the one of the best mean score.

    Candidates are all actions of the later streets and, on street 1, the `openings` that the heuristic likes best.

    Args:
        rollouts: of each candidate; all meet the same cards.

    Raises:
        ConfigError: a number is not positive.
    """

    def __init__(self, rollouts: int = 50, openings: int = 12) -> None:
        if rollouts < 1 or openings < 1:
            raise ConfigError(f"A Monte Carlo player needs at least 1 rollout and opening, not {rollouts}, {openings}.")
        self._rollouts, self._openings = rollouts, openings

    def choose(self, game: TurnGame, seat: int, draw: random.Random) -> int:
        table = cast(OfcGame, game)
        hand = table.hand
        unseen, weights = unseen_cards(table, seat), _weights(table.rules)
        candidates = table.legal_actions(seat).copy()
        if table.street == 0:
            worths, live = np.empty(NUM_ACTIONS), np.empty(18, np.int64)
            count_live(unseen, live)
            estimates(hand.board[seat], hand.filled[seat], hand.held, 0, live, len(unseen), weights, worths)
            candidates = np.sort(np.argsort(-worths, kind="stable")[: self._openings])
        scores = np.zeros(len(candidates))
        rollout_scores(
            hand.board, hand.filled, seat, hand.fantasy, hand.held, unseen, candidates, self._rollouts,
            table.rules.progressive, weights, draws_of(draw.getrandbits(63), 0), scores,
        )  # fmt: skip
        return int(candidates[scores.argmax()])
