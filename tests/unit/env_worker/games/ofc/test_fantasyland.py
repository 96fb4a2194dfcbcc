"""The solver against every board of small hands; what it returns is a legal board of the cards it got."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from simul.env_worker.games.ofc.cards import JOKER
from simul.env_worker.games.ofc.evaluator import (
    BOTTOM,
    CATEGORY,
    FULL_HOUSE,
    MIDDLE,
    QUADS,
    TOP,
    TRIPS,
    board_values,
    row_value,
    royalty,
)
from simul.env_worker.games.ofc.fantasyland import best_board
from tests.support.ofc_cards import parse_cards


def worth(values, stay_value, full_house_stays):
    """Royalties and the value of staying, by the words of the rules."""
    kinds = [int(value) >> CATEGORY for value in values]
    staying = kinds[TOP] == TRIPS or kinds[BOTTOM] >= QUADS or (full_house_stays and kinds[MIDDLE] >= FULL_HOUSE)
    return sum(royalty(row, int(values[row])) for row in (TOP, MIDDLE, BOTTOM)) + stay_value * staying


def best_worth(cards, stay_value, full_house_stays):
    """Over every choice of rows; each subset is evaluated once."""
    indices = range(len(cards))
    value = {
        subset: row_value(cards[list(subset)], 0, size) for size in (3, 5) for subset in combinations(indices, size)
    }
    best = -1.0
    for bottom in combinations(indices, 5):
        left = [index for index in indices if index not in bottom]
        for middle in combinations(left, 5):
            if value[middle] > value[bottom]:
                continue
            for top in combinations([index for index in left if index not in middle], 3):
                if value[top] <= value[middle]:
                    rows = value[top], value[middle], value[bottom]
                    best = max(best, worth(rows, stay_value, full_house_stays))
    return best


def assert_best(cards, stay_value, full_house_stays):
    board, discards = best_board(cards, stay_value, full_house_stays)
    assert sorted([*board, *discards]) == sorted(cards)
    values = np.empty(3, np.int64)
    assert board_values(board, values)
    assert worth(values, stay_value, full_house_stays) == best_worth(cards, stay_value, full_house_stays)


@pytest.mark.parametrize(("jokers", "full_house_stays"), [(0, False), (1, True), (2, False)])
def test_thirteen_cards_against_every_board(jokers, full_house_stays):
    cards = [*random.Random(jokers).sample(range(JOKER), 13 - jokers), *range(JOKER, JOKER + jokers)]
    assert_best(np.array(cards, np.int8), 7.5, full_house_stays)


def test_staying_is_worth_what_is_configured():
    cards = parse_cards("Qs Qd Qc 9s 9d 9c 9h 5s 5d 4h 4c 2d 2h")
    for value in (0.0, 100.0):
        assert_best(cards, value, False)


@pytest.mark.parametrize("count", [14, 15, 16, 17])
def test_a_board_of_every_number_of_cards(count):
    cards = np.array(random.Random(count).sample(range(JOKER + 2), count), np.int8)
    board, discards = best_board(cards, 10.0, True)
    assert len(discards) == count - 13
    assert sorted([*board, *discards]) == sorted(cards)
    assert board_values(board, np.empty(3, np.int64))
