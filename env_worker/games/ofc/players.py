"""Scripted players. They read what their seat knows: the open boards, its own cards and discards."""

from __future__ import annotations

import random
from typing import cast

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import ConfigError
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.games.ofc.actions import NUM_ACTIONS
from simul.env_worker.games.ofc.cards import Cards
from simul.env_worker.games.ofc.estimates.endgame import before_last_worths
from simul.env_worker.games.ofc.estimates.expectation import BONUS, PENALTY, balance_of, expected_worths
from simul.env_worker.games.ofc.estimates.fantasy_rollouts import candidate_scores
from simul.env_worker.games.ofc.estimates.heuristic import (
    FANTASY,
    LIKELY_FANTASY,
    WEIGHTS,
    Weights,
    count_live,
    estimates,
)
from simul.env_worker.games.ofc.estimates.rollouts import rollout_scores
from simul.env_worker.games.ofc.evaluator import FOUL
from simul.env_worker.games.ofc.random_draws import Draws, draws_of
from simul.env_worker.games.ofc.rules import Rules
from simul.env_worker.games.ofc.table import OfcGame

BEFORE_LAST = 3  # street 4
ROLLOUT_PLAYERS = ("rule_based", "fantasy_rules")


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
        unseen, weights = table.unseen(seat), _weights(table.rules)
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


class FantasyRulesPlayer:
    """Plays for Fantasyland and royalties: by its board's expected worth, on streets 4 and 5 exactly.

    It weighs a foul by 3.6 points against each opponent, where `RulePlayer` avoids one at any price.
    """

    def choose(self, game: TurnGame, seat: int, draw: random.Random) -> int:
        table = cast(OfcGame, game)
        hand, unseen = table.hand, table.unseen(seat)
        if table.street != BEFORE_LAST:
            return int(_expected_worths(table, seat, unseen).argmax())
        balance, worths, fouls = balance_of(table.rules), np.empty(NUM_ACTIONS), np.empty(NUM_ACTIONS)
        before_last_worths(
            hand.board[seat], hand.filled[seat], hand.held, unseen, balance[BONUS], balance[PENALTY], worths, fouls
        )
        return int(worths.argmax())


class MonteCarloPlayer:
    """Plays each candidate out against random cards and takes the one of the best mean score.

    Candidates are all actions of the later streets and, on street 1, the `openings` that the heuristic likes best.
    Rollouts by `fantasy_rules` have at most `openings` candidates on every street, and count the last streets exactly.

    Args:
        rollouts: of each candidate; all meet the same cards.
        rollouts_by: the player whose estimate finishes the boards, `rule_based` or `fantasy_rules`.

    Raises:
        ConfigError: a number is not positive, or no such player finishes boards.
    """

    def __init__(self, rollouts: int = 50, openings: int = 12, rollouts_by: str = "rule_based") -> None:
        if rollouts < 1 or openings < 1:
            raise ConfigError(f"A Monte Carlo player needs at least 1 rollout and opening, not {rollouts}, {openings}.")
        if rollouts_by not in ROLLOUT_PLAYERS:
            raise ConfigError(f"Rollouts are played by {' or '.join(ROLLOUT_PLAYERS)}, not by {rollouts_by!r}.")
        self._rollouts, self._openings = rollouts, openings
        self._by_fantasy_rules = rollouts_by == "fantasy_rules"

    def choose(self, game: TurnGame, seat: int, draw: random.Random) -> int:
        table = cast(OfcGame, game)
        unseen, draws = table.unseen(seat), draws_of(draw.getrandbits(63), 0)
        return (self._fantasy_rules if self._by_fantasy_rules else self._rule_based)(table, seat, unseen, draws)

    def _rule_based(self, table: OfcGame, seat: int, unseen: Cards, draws: Draws) -> int:
        hand, weights = table.hand, _weights(table.rules)
        candidates = table.legal_actions(seat).copy()
        if table.street == 0:
            worths, live = np.empty(NUM_ACTIONS), np.empty(18, np.int64)
            count_live(unseen, live)
            estimates(hand.board[seat], hand.filled[seat], hand.held, 0, live, len(unseen), weights, worths)
            candidates = np.sort(np.argsort(-worths, kind="stable")[: self._openings])
        scores = np.zeros(len(candidates))
        rollout_scores(
            hand.board, hand.filled, seat, hand.fantasy, hand.held, unseen, candidates, self._rollouts,
            table.rules.progressive, weights, draws, scores,
        )  # fmt: skip
        return int(candidates[scores.argmax()])

    def _fantasy_rules(self, table: OfcGame, seat: int, unseen: Cards, draws: Draws) -> int:
        legal = table.legal_actions(seat)
        worths = _expected_worths(table, seat, unseen)
        candidates = np.sort(legal[np.argsort(-worths[legal], kind="stable")[: self._openings]])
        scores = candidate_scores(table.hand, seat, unseen, candidates, self._rollouts, table.rules, draws)
        return int(candidates[scores.argmax()])


def _expected_worths(table: OfcGame, seat: int, unseen: Cards) -> NDArray[np.float64]:
    """float64 [actions], of `expected_worths`."""
    hand, worths, live = table.hand, np.empty(NUM_ACTIONS), np.empty(18, np.int64)
    count_live(unseen, live)
    expected_worths(
        hand.board[seat], hand.filled[seat], hand.held, table.street, live, len(unseen), balance_of(table.rules), worths
    )
    return worths
