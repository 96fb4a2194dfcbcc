"""Rollouts by `fantasy_rules`: the last two streets against slow enumerations."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from simul.env_worker.games.ofc.estimates.expectation import BALANCE, BONUS, PENALTY
from simul.env_worker.games.ofc.estimates.fantasy_rollouts import (
    EVERY_DRAW,
    fantasy_rollout_scores,
    final_boards,
    mean_of_best_pairs,
)
from simul.env_worker.games.ofc.estimates.heuristic import after, count_live, final_worth
from simul.env_worker.games.ofc.estimates.rollouts import hidden_points, own_points
from simul.env_worker.games.ofc.evaluator import CELLS, STARTS, board_values, pair_points
from simul.env_worker.games.ofc.hand import STREETS
from simul.env_worker.games.ofc.random_draws import draws_of
from tests.support.ofc_cards import parse_cards

UNSEEN = "Qh 7d 4c 6s Jh 2h 9c"


def laid(*rows):
    board, filled = np.full(CELLS, -1, np.int8), np.zeros(3, np.int8)
    for row, text in enumerate(rows):
        cards = parse_cards(text)
        board[STARTS[row] : STARTS[row] + len(cards)] = cards
        filled[row] = len(cards)
    return board, filled


def placements(board, cards):
    """Every board that these cards fill up."""
    free = np.flatnonzero(board < 0)
    for chosen in permutations(cards.tolist(), len(free)):
        done = board.copy()
        done[free] = chosen
        yield done


def valued(board):
    values = np.empty(3, np.int64)
    return board_values(board, values), values


def scores_of(seats, held, actions, *, hidden=(), rollouts=5, unseen=UNSEEN, guesses=(), most_draws=EVERY_DRAW, seed=1):
    boards, filled = (np.stack(each) for each in zip(*seats, strict=True))
    scores, hides = np.zeros(len(actions)), np.zeros(len(seats), np.bool_)
    hides[list(hidden)] = True
    guessed = np.zeros((len(seats), len(guesses), CELLS), np.int8)
    guessed[list(hidden)] = np.array(guesses, np.int8).reshape(-1, CELLS)
    fantasy_rollout_scores(
        boards, filled, 0, hides, parse_cards(held), parse_cards(unseen), np.array(actions), rollouts, False, BALANCE,
        draws_of(seed, 0), guessed, most_draws, scores,
    )  # fmt: skip
    return scores


def placed(seat, held, action):
    board, filled = seat[0].copy(), seat[1].copy()
    assert after(*seat, parse_cards(held), 3, action, board, filled)
    return board


def test_the_last_street_is_the_mean_over_every_draw_of_the_others():
    me = laid("Qs Qd", "Kc Kd 3h 3c 2c", "As Ad 5s 5d")
    other = laid(*ONE_STREET_LEFT)
    ended = laid("6h 6c 2s", "9s 9d Jd Kh Ks", "Ac Ah Ks Kd 3s")
    actions, held = [232 + 0 * 9 + 0 * 3 + 2, 232 + 1 * 9 + 0 * 3 + 2, 232 + 2 * 9 + 2 * 3 + 0], "5c 8c 3d"
    expected = []
    for action in actions:
        legal, mine = valued(placed(me, held, action))
        points = own_points(mine, legal, 3, False, BALANCE[BONUS])
        legal_end, end = valued(ended[0])
        points += pair_points(mine, legal, end, legal_end)
        replies = []
        for three in combinations(parse_cards(UNSEEN), 3):
            boards = placements(other[0], np.array(three))
            reply = max(boards, key=lambda board: final_worth(board, BALANCE[BONUS], BALANCE[PENALTY]))
            legal_reply, values = valued(reply)
            replies.append(pair_points(mine, legal, values, legal_reply))
        expected.append(points + np.mean(replies))
    assert scores_of([me, other, ended], held, actions) == pytest.approx(expected)


ONE_STREET_LEFT = ("4s 4d", "8h 8d 2d Jc Tc", "Ts Td Th 9h")


def drawn_boards(most_draws, seed=1):
    """Row values of the boards that seat 1 may end with, seat 0 being the one that acts."""
    boards, filled = (np.stack(each) for each in zip(laid("", "", ""), laid(*ONE_STREET_LEFT), strict=True))
    unseen, live = parse_cards(UNSEEN), np.empty(18, np.int64)
    count_live(unseen, live)
    values, legal = np.empty((2, 35, 3), np.int64), np.empty((2, 35), np.bool_)
    sizes, draws = np.zeros(2, np.int64), np.zeros((STREETS, 3, 18, 6))
    final_boards(
        boards, filled, 0, np.zeros(2, np.bool_), unseen, 5, BALANCE, draws_of(seed, 0), live, draws,
        np.zeros((STREETS, 3)), np.zeros((2, 0, CELLS), np.int8), most_draws, values, legal, sizes,
    )  # fmt: skip
    assert sizes[0] == 0
    return values[1, : sizes[1]].tolist()


def test_so_many_draws_of_another_seat_count_and_none_twice():
    every = drawn_boards(35)
    assert (len(every), drawn_boards(EVERY_DRAW)) == (35, every)
    for most_draws in (1, 12, 34):
        some = drawn_boards(most_draws)
        assert (len(some), drawn_boards(most_draws)) == (most_draws, some)
        assert all(some.count(values) <= every.count(values) for values in some)
    assert drawn_boards(12, seed=2) != drawn_boards(12)


def test_a_sample_of_the_draws_agrees_with_all_of_them():
    seats, held, seeds = [laid("Qs Qd", "Kc Kd 3h 3c 2c", "As Ad 5s 5d"), laid(*ONE_STREET_LEFT)], "5c 8c 3d", 400
    actions = [232 + 0 * 9 + 0 * 3 + 2, 232 + 1 * 9 + 0 * 3 + 2, 232 + 2 * 9 + 2 * 3 + 0]
    exact = scores_of(seats, held, actions)
    found = np.array([scores_of(seats, held, actions, most_draws=12, seed=seed) for seed in range(seeds)])
    error = found.std(0, ddof=1) / seeds**0.5
    assert (error > 0).any()
    assert (abs(found.mean(0) - exact) <= 4 * error + 1e-9).all()


def test_before_the_last_street_every_draw_of_the_seat_counts():
    me, held = laid("Qs Qd", "Kc Kd 3h", "As Ad 5s 5d"), "Qc 3c 2d"
    hidden = laid("", "", "")
    actions = [232 + 2 * 9 + 0 * 3 + 1, 232 + 0 * 9 + 1 * 3 + 1]
    expected = []
    for action in actions:
        board, best = placed(me, held, action), []
        for three in combinations(parse_cards(UNSEEN), 3):
            points = []
            for done in placements(board, np.array(three)):
                legal, values = valued(done)
                points.append(own_points(values, legal, 2, False, BALANCE[BONUS]) + hidden_points(values, legal))
            best.append(max(points))
        expected.append(np.mean(best))
    assert scores_of([me, hidden], held, actions, hidden=(1,)) == pytest.approx(expected)


def test_a_hidden_board_counts_as_the_mean_of_those_that_it_may_be():
    me, held = laid("Qs Qd", "Kc Kd 3h 3c 2c", "As Ad 5s 5d"), "5c 8c 3d"
    guesses = [
        laid("6h 6c 2s", "9s 9d 9h Kh Ks", "Ac Ah Qc Qd Qs")[0],
        laid("7s 7c 7h", "Jd Jc Js 4h 4s", "8h 8d 8s 8c 2d")[0],
    ]
    actions = [232 + 0 * 9 + 0 * 3 + 2, 232 + 2 * 9 + 2 * 3 + 0]
    expected = []
    for action in actions:
        legal, mine = valued(placed(me, held, action))
        points = [pair_points(mine, legal, values, True) for _, values in map(valued, guesses)]
        expected.append(own_points(mine, legal, 2, False, BALANCE[BONUS]) + np.mean(points))
    found = scores_of([me, laid("", "", "")], held, actions, hidden=(1,), guesses=guesses)
    assert found == pytest.approx(expected)


def test_more_cards_in_fantasyland_are_worth_more_where_it_is_progressive():
    tops = ["Qs Qd 2c", "Ks Kd 2c", "As Ad 2c", "2s 2d 2c"]
    worth = [[own_points(valued(laid(top, "3h 3d 3c 4s 4d", "5s 5d 5h 5c 6s")[0])[1], True, 3, progressive, 11.0)
              for top in tops] for progressive in (False, True)]  # fmt: skip
    assert worth[0] == [22.0] * 4
    assert worth[1] == sorted(worth[1])
    assert (worth[1][0], worth[1][3]) == (22.0, 55.0)


def test_best_pairs_of_three_cards():
    points = np.random.default_rng(1).random((6, 6))
    slow = [max(points[pair] for pair in combinations(three, 2)) for three in combinations(range(6), 3)]
    assert mean_of_best_pairs(points) == pytest.approx(np.mean(slow))


def test_rollouts_of_early_streets_prefer_what_cannot_foul():
    me = laid("Qs 2c", "Kc Kd 3h", "As Ad")
    other = laid("4s", "8h 8d", "Ts Td Th 9h")
    cards = "Qh 7d 4c 6s Jh 2h 9c 4h 5c 6d 7s 8c 9s Tc Jd Jc Js 3c 3d 5h"
    pair_below, pair_on_top = 232 + 2 * 9 + 2 * 3 + 1, 232 + 0 * 9 + 1 * 3 + 0
    scores = scores_of([me, other], "Ah Kh 2d", [pair_below, pair_on_top], rollouts=40, unseen=cards)
    assert scores[0] > scores[1] + 3, "three aces and three kings, or a king and twos on top"
