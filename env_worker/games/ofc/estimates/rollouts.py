"""Rollouts of the Monte Carlo player: boards finished at random cards by the heuristic, scored against each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled
from simul.env_worker.games.ofc.actions import NUM_ACTIONS, OPENINGS
from simul.env_worker.games.ofc.cards import Cards
from simul.env_worker.games.ofc.estimates.heuristic import FANTASY, Weights, after, count_live, estimate
from simul.env_worker.games.ofc.evaluator import FOUL, TOP, board_values, pair_points, royalties
from simul.env_worker.games.ofc.hand import OPENING_CARDS, STREET_CARDS, STREETS, cards_placed, copy_board
from simul.env_worker.games.ofc.random_draws import Draws, shuffle_front
from simul.env_worker.games.ofc.rules import FANTASY_CARDS, entry_cards

# Of 14 to 17 cards in Fantasyland, against that of 14: hands that one seat played there against `fantasy_rules` were
# worth 11.5, 21.0 and 28.2 points against one opponent with 14, 16 and 17 cards; 15 lies between.
WORTH_OF_CARDS = (1.0, 1.4, 1.8, 2.5)


@compiled()
def finish(board: Cards, filled: Cards, cards: Cards, live: NDArray[np.int64], unseen: int, weights: Weights) -> int:
    """Fill the board, in place, street by street with the cards in their order; returns how many were dealt."""
    new_board, new_filled = np.empty_like(board), np.empty_like(filled)
    dealt = 0
    while True:
        placed = cards_placed(filled)
        if placed == 13:
            return dealt
        street = 0 if placed == 0 else (placed - 3) // 2
        count = OPENING_CARDS if street == 0 else STREET_CARDS
        held = cards[dealt : dealt + count]
        dealt += count
        best, chosen = -np.inf, -1
        for action in range(0 if street == 0 else OPENINGS, OPENINGS if street == 0 else NUM_ACTIONS):
            if after(board, filled, held, count, action, new_board, new_filled):
                worth = estimate(new_board, new_filled, live, unseen, STREETS - 1 - street, weights)
                if worth > best:
                    best, chosen = worth, action
        after(board, filled, held, count, chosen, new_board, new_filled)
        copy_board(new_board, new_filled, board, filled)


@compiled()
def rollout_scores(
    boards: Cards, filled: Cards, seat: int, hidden: NDArray[np.bool_], held: Cards, unseen: Cards,
    candidates: NDArray[np.int64], rollouts: int, progressive: bool, weights: Weights, draws: Draws,
    scores: NDArray[np.float64],
) -> None:  # fmt: skip
    """Add to `scores`, float64 [candidates], each one's points and value of Fantasyland over the rollouts.

    All candidates meet the same cards. Of a hidden board nothing is known: it counts as legal, without royalties, and
    as winning half of the rows.
    """
    players, count = boards.shape[0], len(unseen)
    live = np.empty(18, np.int64)
    count_live(unseen, live)
    cards = unseen.copy()
    values, legal = np.empty((players, 3), np.int64), np.zeros(players, np.bool_)
    board, rows = np.empty_like(boards[0]), np.empty_like(filled[0])
    holding = OPENING_CARDS if cards_placed(filled[seat]) == 0 else STREET_CARDS
    for _ in range(rollouts):
        shuffle_front(draws, cards, count, count)
        dealt = 0
        for step in range(1, players):
            other = (seat + step) % players
            if not hidden[other]:
                copy_board(boards[other], filled[other], board, rows)
                dealt += finish(board, rows, cards[dealt:], live, count, weights)
                legal[other] = board_values(board, values[other])
        for number in range(len(candidates)):
            after(boards[seat], filled[seat], held, holding, candidates[number], board, rows)
            finish(board, rows, cards[dealt:], live, count, weights)
            legal[seat] = board_values(board, values[seat])
            scores[number] += seat_points(values, legal, hidden, seat, progressive, weights[FANTASY])


@compiled()
def seat_points(
    values: NDArray[np.int64], legal: NDArray[np.bool_], hidden: NDArray[np.bool_], seat: int, progressive: bool,
    fantasy: float,
) -> float:  # fmt: skip
    """Points of a seat against the others and its value of Fantasyland; values int64 [seats, 3] of complete boards."""
    points = own_points(values[seat], legal[seat], len(values), progressive, fantasy)
    for other in range(len(values)):
        if other == seat:
            continue
        if not hidden[other]:
            points += pair_points(values[seat], legal[seat], values[other], legal[other])
        else:
            points += hidden_points(values[seat], legal[seat])
    return points


@compiled()
def own_points(mine: NDArray[np.int64], my_board_legal: bool, players: int, progressive: bool, fantasy: float) -> float:
    """What entering Fantasyland with 14 cards is worth, `fantasy` points against each opponent, or with more of them.

    `mine`: row values int64 [3].
    """
    cards = entry_cards(mine[TOP], progressive) if my_board_legal else 0
    return fantasy * WORTH_OF_CARDS[cards - FANTASY_CARDS] * (players - 1) if cards else 0.0


@compiled()
def hidden_points(mine: NDArray[np.int64], my_board_legal: bool) -> float:
    """Points against a board in Fantasyland, as if it were legal, without royalties, and won half of the rows."""
    return float(royalties(mine)) if my_board_legal else -float(FOUL)
