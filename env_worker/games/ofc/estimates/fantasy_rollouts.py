"""Rollouts by `fantasy_rules`: all boards finished by their expected worth, the last streets counted exactly.

On streets 1 to 3 each candidate is played out against random cards. On street 4 every draw of the seat's own last
street is counted, against sampled final boards of the others. Of a seat with one street left these are all that the
unseen cards allow, or a bounded sample of them. Scores are points and the value of Fantasyland, against all others
together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled
from simul.env_worker.games.ofc.actions import NUM_ACTIONS, OPENINGS
from simul.env_worker.games.ofc.cards import JOKER, Cards
from simul.env_worker.games.ofc.estimates.endgame import free_cells
from simul.env_worker.games.ofc.estimates.expectation import BONUS, balance_of, expected_worth, street_tables
from simul.env_worker.games.ofc.estimates.heuristic import after, count_live
from simul.env_worker.games.ofc.estimates.prospects import MOST_NEEDED, MOST_OUTS, Chances, Live
from simul.env_worker.games.ofc.estimates.rollouts import hidden_points, own_points, seat_points
from simul.env_worker.games.ofc.evaluator import CELLS, board_values, pair_points
from simul.env_worker.games.ofc.hand import OPENING_CARDS, STREET_CARDS, STREETS, Hand, cards_placed, copy_board
from simul.env_worker.games.ofc.random_draws import Draws, draw_below, shuffle_front
from simul.env_worker.games.ofc.rules import Rules

STREET_4 = 9  # cards in the rows before it
STREET_5 = 11
EVERY_DRAW = 54 * 53 * 52 // 6  # as many as three cards of a deck allow


@compiled()
def play_out(
    board: Cards, filled: Cards, cards: Cards, live: Live, draws: Chances, new_pairs: Chances, balance: Chances
) -> int:
    """Fill the board, in place, street by street with the cards in their order; returns how many were dealt.

    Args:
        board, filled: int8 [13] and [3].
        cards: int8 [K], as many as the board still gets, or more.
        live: int64 [18], of the cards unseen before.
        draws, new_pairs: [STREETS, ...], of `street_tables` by how many streets are left after a placement.
    """
    new_board, new_filled, left = np.empty_like(board), np.empty_like(filled), live.copy()
    dealt = 0
    while True:
        placed = cards_placed(filled)
        if placed == CELLS:
            return dealt
        street = 0 if placed == 0 else (placed - 3) // 2
        count = OPENING_CARDS if street == 0 else STREET_CARDS
        held = cards[dealt : dealt + count]
        dealt += count
        for card in held:
            if card >= JOKER:
                left[17] -= 1
            else:
                left[card >> 2] -= 1
                left[13 + (card & 3)] -= 1
        after_it = STREETS - 1 - street
        best, chosen = -np.inf, -1
        for action in range(0 if street == 0 else OPENINGS, OPENINGS if street == 0 else NUM_ACTIONS):
            if after(board, filled, held, count, action, new_board, new_filled):
                worth = expected_worth(
                    new_board, new_filled, left, draws[after_it], new_pairs[after_it], after_it, balance
                )  # fmt: skip
                if worth > best:
                    best, chosen = worth, action
        after(board, filled, held, count, chosen, new_board, new_filled)
        copy_board(new_board, new_filled, board, filled)


def candidate_scores(
    hand: Hand, seat: int, unseen: Cards, candidates: NDArray[np.intp], rollouts: int, rules: Rules, random: Draws,
    guesses: Cards | None = None, most_draws: int = EVERY_DRAW,
) -> NDArray[np.float64]:  # fmt: skip
    """float64 [candidates]: `fantasy_rollout_scores` of the seat that acts."""
    if guesses is None:
        guesses = np.empty((rules.players, 0, CELLS), np.int8)
    scores = np.zeros(len(candidates))
    fantasy_rollout_scores(
        hand.board, hand.filled, seat, hand.fantasy, hand.held, unseen, candidates, rollouts, rules.progressive,
        balance_of(rules), random, guesses, most_draws, scores,
    )  # fmt: skip
    return scores


@compiled()
def fantasy_rollout_scores(
    boards: Cards, filled: Cards, seat: int, hidden: NDArray[np.bool_], held: Cards, unseen: Cards,
    candidates: NDArray[np.int64], rollouts: int, progressive: bool, balance: Chances, random: Draws,
    guesses: Cards, most_draws: int, scores: NDArray[np.float64],
) -> None:  # fmt: skip
    """Write each candidate's mean score, float64 [candidates]; arguments as of `rollouts.rollout_scores`.

    `guesses`: int8 [seats, N, 13], complete boards that each hidden one may be; on the last two streets they count in
    its place. N may be 0. `most_draws`, at least 1: of the last street of another seat. Where the unseen cards allow
    more, so many are drawn without replacement; where they do not, all count and nothing is drawn.
    """
    count = len(unseen)
    live = np.empty(18, np.int64)
    count_live(unseen, live)
    draws, new_pairs = np.empty((STREETS, 3, MOST_OUTS + 1, MOST_NEEDED + 1)), np.empty((STREETS, 3))
    placed = cards_placed(filled[seat])
    left = STREETS - 1 if placed == 0 else STREETS - 1 - (placed - 3) // 2
    for after_it in range(STREETS):
        behind = count - STREET_CARDS * max(left - after_it, 0)
        street_tables(live, max(behind, STREET_CARDS), after_it, balance, draws[after_it], new_pairs[after_it])
    if placed < STREET_4:
        _played_out(
            boards, filled, seat, hidden, held, unseen, candidates, rollouts, progressive, balance, random,
            live, draws, new_pairs, scores,
        )  # fmt: skip
        return
    players = boards.shape[0]
    most = max(rollouts, guesses.shape[1], min(count * (count - 1) * (count - 2) // 6, most_draws))
    values, legal = np.empty((players, most, 3), np.int64), np.empty((players, most), np.bool_)
    sizes = np.zeros(players, np.int64)
    final_boards(
        boards, filled, seat, hidden, unseen, rollouts, balance, random, live, draws, new_pairs, guesses, most_draws,
        values, legal, sizes,
    )  # fmt: skip
    board, rows, mine = np.empty_like(boards[0]), np.empty_like(filled[0]), np.empty(3, np.int64)
    points = np.empty((count, count))
    for number in range(len(candidates)):
        after(boards[seat], filled[seat], held, STREET_CARDS, candidates[number], board, rows)
        if placed == STREET_5:
            scores[number] = _mean_points(board, mine, values, legal, sizes, progressive, balance[BONUS])
            continue
        _pair_points(board, rows, unseen, mine, values, legal, sizes, progressive, balance[BONUS], points)
        scores[number] = mean_of_best_pairs(points)


@compiled()
def _played_out(
    boards: Cards, filled: Cards, seat: int, hidden: NDArray[np.bool_], held: Cards, unseen: Cards,
    candidates: NDArray[np.int64], rollouts: int, progressive: bool, balance: Chances, random: Draws,
    live: Live, draws: Chances, new_pairs: Chances, scores: NDArray[np.float64],
) -> None:  # fmt: skip
    """Streets 1 to 3: all candidates meet the same cards and the same boards of the others."""
    players, count = boards.shape[0], len(unseen)
    cards = unseen.copy()
    values, legal = np.empty((players, 3), np.int64), np.zeros(players, np.bool_)
    board, rows = np.empty_like(boards[0]), np.empty_like(filled[0])
    holding = OPENING_CARDS if cards_placed(filled[seat]) == 0 else STREET_CARDS
    scores[:] = 0.0
    for _ in range(rollouts):
        shuffle_front(random, cards, count, count)
        dealt = 0
        for step in range(1, players):
            other = (seat + step) % players
            if not hidden[other]:
                copy_board(boards[other], filled[other], board, rows)
                dealt += play_out(board, rows, cards[dealt:], live, draws, new_pairs, balance)
                legal[other] = board_values(board, values[other])
        for number in range(len(candidates)):
            after(boards[seat], filled[seat], held, holding, candidates[number], board, rows)
            play_out(board, rows, cards[dealt:], live, draws, new_pairs, balance)
            legal[seat] = board_values(board, values[seat])
            scores[number] += seat_points(values, legal, hidden, seat, progressive, balance[BONUS]) / rollouts


@compiled()
def final_boards(
    boards: Cards, filled: Cards, seat: int, hidden: NDArray[np.bool_], unseen: Cards, rollouts: int,
    balance: Chances, random: Draws, live: Live, draws: Chances, new_pairs: Chances, guesses: Cards, most_draws: int,
    values: NDArray[np.int64], legal: NDArray[np.bool_], sizes: NDArray[np.int64],
) -> None:  # fmt: skip
    """Write row values, int64 [seats, N, 3], and legality of the boards that each other seat may end with, and N.

    They are as likely as each other: those of every draw, at most `most_draws`, where a seat has one street left, else
    of `rollouts` random ones. N is 1 of a complete board, 0 of the seat itself; of a hidden one that of the guesses, or
    -1 without guesses.
    """
    count = len(unseen)
    board, rows = np.empty_like(boards[0]), np.empty_like(filled[0])
    cards, three = unseen.copy(), np.empty(STREET_CARDS, np.int8)
    for other in range(boards.shape[0]):
        if other == seat:
            continue
        if hidden[other]:
            for number in range(guesses.shape[1]):
                legal[other, number] = board_values(guesses[other, number], values[other, number])
            sizes[other] = guesses.shape[1] or -1
            continue
        placed = cards_placed(filled[other])
        if placed == CELLS:
            legal[other, 0] = board_values(boards[other], values[other, 0])
            sizes[other] = 1
        elif placed == STREET_5:
            behind = count * (count - 1) * (count - 2) // 6  # draws that are not looked at yet
            for one in range(count):
                for two in range(one + 1, count):
                    for last in range(two + 1, count):
                        wanted = most_draws - sizes[other]
                        taken = behind <= wanted or draw_below(random, behind) < wanted  # uniform, none twice
                        behind -= 1
                        if not taken:
                            continue
                        three[0], three[1], three[2] = unseen[one], unseen[two], unseen[last]
                        copy_board(boards[other], filled[other], board, rows)
                        play_out(board, rows, three, live, draws, new_pairs, balance)
                        legal[other, sizes[other]] = board_values(board, values[other, sizes[other]])
                        sizes[other] += 1
        else:
            for number in range(rollouts):
                shuffle_front(random, cards, 2 * STREET_CARDS, count)
                copy_board(boards[other], filled[other], board, rows)
                play_out(board, rows, cards, live, draws, new_pairs, balance)
                legal[other, number] = board_values(board, values[other, number])
            sizes[other] = rollouts


@compiled()
def _mean_points(
    board: Cards, mine: NDArray[np.int64], values: NDArray[np.int64], legal: NDArray[np.bool_],
    sizes: NDArray[np.int64], progressive: bool, bonus: float,
) -> float:  # fmt: skip
    """Of a complete board against the others' final boards. `mine`, int64 [3], is overwritten."""
    my_board_legal = board_values(board, mine)
    points = own_points(mine, my_board_legal, len(sizes), progressive, bonus)
    for other in range(len(sizes)):
        if sizes[other] < 0:
            points += hidden_points(mine, my_board_legal)
        total = 0
        for number in range(sizes[other]):
            total += pair_points(mine, my_board_legal, values[other, number], legal[other, number])
        points += total / max(sizes[other], 1)
    return points


@compiled()
def _pair_points(
    board: Cards, filled: Cards, unseen: Cards, mine: NDArray[np.int64], values: NDArray[np.int64],
    legal: NDArray[np.bool_], sizes: NDArray[np.int64], progressive: bool, bonus: float, points: NDArray[np.float64],
) -> None:  # fmt: skip
    """Write the upper triangle [K, K]: mean points of the better placement of two cards in the two free cells."""
    cells = np.empty(2, np.int64)
    same_row = free_cells(filled, cells)
    for one in range(len(unseen)):
        for two in range(one + 1, len(unseen)):
            board[cells[0]], board[cells[1]] = unseen[one], unseen[two]
            best = _mean_points(board, mine, values, legal, sizes, progressive, bonus)
            if not same_row:
                board[cells[0]], board[cells[1]] = unseen[two], unseen[one]
                best = max(best, _mean_points(board, mine, values, legal, sizes, progressive, bonus))
            points[one, two] = best


@compiled()
def mean_of_best_pairs(points: NDArray[np.float64]) -> float:
    """Over all choices of three of K cards, of the best two among them, from the upper triangle [K, K]."""
    total, draws = 0.0, 0
    for one in range(len(points)):
        for two in range(one + 1, len(points)):
            for three in range(two + 1, len(points)):
                total += max(points[one, two], points[one, three], points[two, three])
                draws += 1
    return total / draws
