"""Values of rows against eval7 and against every substitution of the jokers; royalties and points."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import numpy as np
import pytest
from numba import njit

from simul.env_worker.games.ofc.cards import JOKER, card_name
from simul.env_worker.games.ofc.evaluator import (
    BOTTOM,
    CATEGORIES,
    MIDDLE,
    TOP,
    board_values,
    category,
    pair_points,
    row_value,
    royalty,
)
from tests.support.ofc_cards import parse_cards

eval7 = pytest.importorskip("eval7")

EXTERNAL = [eval7.Card(card_name(card)) for card in range(JOKER)]
EXTERNAL_NAMES = {
    "High Card": "high card", "Pair": "pair", "Two Pair": "two pairs", "Trips": "three of a kind",
    "Straight": "straight", "Flush": "flush", "Full House": "full house", "Quads": "quads",
    "Straight Flush": "straight flush",
}  # fmt: skip


def value(text: str) -> int:
    cards = parse_cards(text)
    return row_value(cards, 0, len(cards))


@njit
def values_of(hands, values):
    for index in range(len(hands)):
        values[index] = row_value(hands[index], 0, hands.shape[1])


def compare(hands):
    """Distinct (eval7's value, ours) of int8 [N, 3 or 5]; the categories agree."""
    values = np.empty(len(hands), np.int64)
    values_of(hands, values)
    pairs = set()
    for hand, own in zip(hands.tolist(), values.tolist(), strict=True):
        theirs = eval7.evaluate([EXTERNAL[card] for card in hand])
        if (theirs, own) not in pairs:
            assert EXTERNAL_NAMES[eval7.handtype(theirs)] == CATEGORIES[category(own)], hand
            pairs.add((theirs, own))
    return pairs


def assert_one_order(pairs):
    ordered = sorted(pairs)
    assert all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(ordered))


def random_hands(count, seed):
    draw = np.random.default_rng(seed)
    return np.argsort(draw.random((count, JOKER)), axis=1)[:, :5].astype(np.int8)


def all_tops():
    return np.array(list(combinations(range(JOKER), 3)), np.int8)


@pytest.mark.parametrize(
    ("parts", "rows", "fewest"),
    [(1, 20_000, 0), pytest.param(50, 100_000, 7_400, marks=pytest.mark.slow)],  # 7462 + 455 + 13 rows differ
)
def test_all_rows_of_three_and_random_rows_of_five_are_in_one_order_with_eval7(parts, rows, fewest):
    pairs = compare(all_tops())
    for part in range(parts):
        pairs |= compare(random_hands(rows, 100 + part))
    assert_one_order(pairs)
    assert len(pairs) > fewest


@pytest.mark.parametrize(
    ("top", "middle", "legal"),
    [
        ("Qs Qd 7c", "Qh Qc 6s 5d 4c", False),
        ("Ks Kd Ac", "Kh Kc Qs 7d 3c", False),
        ("Ks Kd Ac", "Kh Kc Ad 3s 2c", True),  # equal as far as three cards go, then two more kickers
        ("As Kd Qc", "Ah Kc Qs 3d 2c", True),
        ("2s 2d 2c", "As Ad Kc Kd Qs", False),
        ("9s Ts Js", "8d 6c 5s 3d 2c", False),  # no straight and no flush on top, but jack high
        ("9s Ts Js", "Qd 6c 5s 3d 2c", True),
    ],
)
def test_top_and_middle_compare_across_sizes(top, middle, legal):
    board = np.concatenate([parse_cards(top), parse_cards(middle), parse_cards("2h 3h 4h 5h 6h")])
    assert board_values(board, np.empty(3, np.int64)) == legal


def test_equal_rows_are_legal():
    board = parse_cards("2s 3d 4c" + "Ah Kh 9s 6d 5c" + "Ad Kd 9c 6s 5h")
    assert board_values(board, np.empty(3, np.int64))


def with_jokers_replaced(cards):
    natural = [card for card in cards if card < JOKER]
    others = [card for card in range(JOKER) if card not in natural]
    boards = combinations(others, len(cards) - len(natural))
    return max(row_value(np.array([*natural, *more], np.int8), 0, len(cards)) for more in boards)


@pytest.mark.parametrize("size", [3, 5])
def test_one_joker_is_the_best_card_that_is_not_in_the_row(size):
    draw = random.Random(3)
    for _ in range(300):
        cards = np.array([*draw.sample(range(JOKER), size - 1), JOKER], np.int8)
        assert row_value(cards, 0, size) == with_jokers_replaced(cards.tolist()), cards


@pytest.mark.parametrize("size", [3, 5])
def test_two_jokers_are_the_best_cards_that_are_not_in_the_row(size):
    draw = random.Random(4)
    for _ in range(60):
        cards = np.array([*draw.sample(range(JOKER), size - 2), JOKER, JOKER + 1], np.int8)
        assert row_value(cards, 0, size) == with_jokers_replaced(cards.tolist()), cards


def test_there_is_no_five_of_a_kind():
    assert value("As Ad Ac Ah Jo") == value("As Ad Ac Ah Kc")
    assert value("As Ad Ac Jo Jo") == value("As Ad Ac Ah Kc")
    assert value("7s 7d 7c Jo Jo") == value("7s 7d 7c 7h Ac")


def test_royalties():
    assert [royalty(TOP, value(f"{rank}s {rank}d 2c")) for rank in "56789TJQKA"] == list(range(10))
    assert [royalty(TOP, value(f"{rank}s {rank}d {rank}c")) for rank in "23456789TJQKA"] == list(range(10, 23))
    assert royalty(TOP, value("Qs Ks As")) == royalty(TOP, value("2s 2d Ac")) == 0
    rows = ["7c 7d 7h Ks 2c", "2c 3d 4h 5s 6c", "2c 5c 6c 7c Kc", "2c 2d 2h 3c 3d", "2c 2d 2h 2s 3d"]
    rows += ["5c 6c 7c 8c 9c", "Tc Jc Qc Kc Ac"]
    assert [royalty(BOTTOM, value(row)) for row in rows] == [0, 2, 4, 6, 10, 15, 25]
    assert [royalty(MIDDLE, value(row)) for row in rows] == [2, 4, 8, 12, 20, 30, 50]
    assert royalty(BOTTOM, value("Ac 2c 3c 4c 5c")) == 15
    assert royalty(BOTTOM, value("9c Tc Jc Qc Kc")) == 15
    assert [royalty(row, value("Ac Ad Kc Kd Qs")) for row in (MIDDLE, BOTTOM)] == [0, 0]


BOARDS = {
    "flush": parse_cards("Qs Qd 2c" + "Kc Kd 3h 4h 6h" + "2s 5s 7s 9s Js"),  # royalties 7 + 4
    "plain": parse_cards("Ac 9d 3c" + "Ah 8c 8d 5d 4c" + "Jc Jd 7c 6d 4d"),
    "foul": parse_cards("As Ad Ac" + "Kc Qd 9h 4h 3h" + "2s 5s 7s 9s Js"),
}


@pytest.mark.parametrize(
    ("one", "two", "points"),
    [
        ("flush", "plain", 17),  # three rows, scoop, 11 royalties
        ("flush", "foul", 17),  # 6 and royalties; those of the foul are void
        ("plain", "foul", 6),
        ("foul", "foul", 0),
        ("flush", "flush", 0),
    ],
)
def test_points_of_a_pair(one, two, points):
    values, legal = {}, {}
    for name, board in BOARDS.items():
        values[name] = np.empty(3, np.int64)
        legal[name] = board_values(board, values[name])
    assert pair_points(values[one], legal[one], values[two], legal[two]) == points
    assert pair_points(values[two], legal[two], values[one], legal[one]) == -points


def test_two_rows_of_three_win_one_point():
    mine, other = np.array([9, 9, 1]), np.array([1, 1, 9])
    assert pair_points(mine, True, other, True) == 1
    assert pair_points(np.array([9, 9, 9]), True, np.array([9, 1, 1]), True) == 2  # a tied row: no scoop
