"""The expected worth of constructed boards."""

from __future__ import annotations

import numpy as np
import pytest

from simul.env_worker.games.ofc.estimates.expectation import (
    BALANCE,
    BONUS,
    PENALTY,
    expected_worth,
    expected_worths,
    street_tables,
)
from simul.env_worker.games.ofc.estimates.heuristic import count_live, final_worth
from simul.env_worker.games.ofc.estimates.prospects import MOST_NEEDED, MOST_OUTS
from simul.env_worker.games.ofc.evaluator import SIZES, STARTS
from tests.support.ofc_cards import parse_cards

NO_FANTASYLAND = np.where(np.arange(len(BALANCE)) == BONUS, 0.0, BALANCE)


def laid(*rows):
    """Board, int8 [13], and row counts, int8 [3], of cards on top, in the middle and in the bottom."""
    board, filled = np.full(13, -1, np.int8), np.zeros(3, np.int8)
    for row, (start, size, text) in enumerate(zip(STARTS, SIZES, rows, strict=True)):
        cards = parse_cards(text)
        assert len(cards) <= size
        board[start : start + len(cards)] = cards
        filled[row] = len(cards)
    return board, filled


def worth(*rows, streets_left, gone="", balance=BALANCE):
    board, filled = laid(*rows)
    unseen = np.setdiff1d(np.arange(52, dtype=np.int8), [*board[board >= 0], *parse_cards(gone)]).astype(np.int8)
    live = np.empty(18, np.int64)
    count_live(unseen, live)
    draws, new_pairs = np.empty((3, MOST_OUTS + 1, MOST_NEEDED + 1)), np.empty(3)
    street_tables(live, len(unseen), streets_left, balance, draws, new_pairs)
    return expected_worth(board, filled, live, draws, new_pairs, streets_left, balance)


def test_a_complete_board_is_worth_what_it_scores():
    board, _ = laid("Qh Qc 2d", "Ah Ac 3d 3s 9c", "Kh 9h 5h 3h 2h")
    found = worth("Qh Qc 2d", "Ah Ac 3d 3s 9c", "Kh 9h 5h 3h 2h", streets_left=0)
    assert found == final_worth(board, BALANCE[BONUS], BALANCE[PENALTY])


def test_a_certain_foul_costs_the_penalty():
    assert worth("Kh Kc 2d", "Ah Jc 9d 8s 4c", "Qc Qd 5s", streets_left=1) == pytest.approx(-BALANCE[PENALTY])


def test_fantasyland_is_worth_its_bonus_where_nothing_can_be_foul():
    rows = ("Qh Qc 2d", "Ah Ac 3d 3s 9c", "Kh 9h 5h 3h 2h")
    open_rows = (rows[0], rows[1], "Kh Kc Kd 9h")  # three kings stay above the middle
    with_it, without = (worth(*open_rows, streets_left=1, balance=each) for each in (BALANCE, NO_FANTASYLAND))
    assert with_it - without == pytest.approx(BALANCE[BONUS])


def test_a_queen_on_top_counts_the_queens_that_are_left():
    rows = ("Qh", "Kh Kc 3d 3s", "Ah Ac Ad 9h")
    seen = ["", "Qd", "Qd Qs", "Qd Qs Qc"]
    found = [worth(*rows, streets_left=2, gone=gone) for gone in seen]
    assert found == sorted(found, reverse=True)
    assert found[0] - found[3] > 2


def test_queens_on_top_want_rows_below_them_that_hold():
    strong, weak = ("Kh Kc 3d 3s", "Ah Ac Ad 9h"), ("8h 7c 3d 2s", "Ah Jc 9d 5h")
    queens, low = ("Qh Qc", "4h 5c")
    assert worth(queens, *strong, streets_left=2) > worth(low, *strong, streets_left=2) + 5
    assert worth(queens, *weak, streets_left=2) < worth(low, *weak, streets_left=2)


def test_the_worth_never_exceeds_that_of_the_best_board():
    found = worth("", "", "Ah Kh Qh Jh Th", streets_left=4)
    assert -BALANCE[PENALTY] < found < 25 + 22 + 50 + BALANCE[BONUS] + 10


def test_only_legal_actions_have_a_worth():
    board, filled = laid("4h 5c 7d", "Kh Kc 3d", "Ah Ac Ad 9h 9c")
    live, worths = np.empty(18, np.int64), np.empty(259)
    count_live(parse_cards("2c 2d 2h 6c 6d 8s 8h Td Ts"), live)
    expected_worths(board, filled, parse_cards("Ks Jd 3s"), 3, live, 9, BALANCE, worths)
    assert np.flatnonzero(np.isfinite(worths)).tolist() == [232 + 9 * discard + 3 + 1 for discard in range(3)]
    assert worths.argmax() == 232 + 9 + 4, "the jack goes; kings and threes are full"
