"""What rows of an unfinished board may become: chances of draws, and prospects of constructed rows."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from simul.env_worker.games.ofc.estimates.heuristic import count_live
from simul.env_worker.games.ofc.estimates.prospects import (
    MOST_NEEDED,
    MOST_OUTS,
    MOST_PROSPECTS,
    draw_chances,
    five_prospects,
    new_pair_chance,
    top_prospects,
)
from simul.env_worker.games.ofc.evaluator import (
    BOTTOM,
    CATEGORY,
    FLUSH,
    FULL_HOUSE,
    MIDDLE,
    PAIR,
    STARTS,
    STRAIGHT,
    TOP,
    TRIPS,
    row_value,
)
from tests.support.ofc_cards import parse_cards

ALL = np.arange(52, dtype=np.int8)


def prospects(row, cards, to_come=6, gone="", unseen=None):
    """{value: chance} of a row with these cards, best first; all else but `gone` is unseen, and no other row draws."""
    held = parse_cards(cards)
    unseen = np.setdiff1d(ALL, [*held, *parse_cards(gone)]) if unseen is None else parse_cards(unseen)
    board = np.full(13, -1, np.int8)
    board[STARTS[row] : STARTS[row] + len(held)] = held
    live, draws = np.empty(18, np.int64), np.empty((3, MOST_OUTS + 1, MOST_NEEDED + 1))
    count_live(unseen, live)
    draw_chances(len(unseen), to_come, np.ones(3), draws)
    values, chances = np.empty(MOST_PROSPECTS, np.int64), np.empty(MOST_PROSPECTS)
    if row == TOP:
        found = top_prospects(board, len(held), live, draws[row], values, chances)
    else:
        pairing = new_pair_chance(live, draws[row])
        found = five_prospects(board, row, len(held), live, draws[row], pairing, values, chances)
    assert (np.diff(values[:found]) < 0).all(), "best first"
    assert chances[:found].min() >= 0
    assert chances[:found].sum() == pytest.approx(1)
    assert values[found - 1] == row_value(board, STARTS[row], len(held)), "the last one is the row as it is"
    return dict(zip(values[:found].tolist(), chances[:found].tolist(), strict=True))


def of_kind(found, kind):
    return sum(chance for value, chance in found.items() if value >> CATEGORY == kind)


def drawn(outs, unseen, to_come, needed=1):
    """The same chance as a sum over draws."""
    ways = sum(comb(outs, hits) * comb(unseen - outs, to_come - hits) for hits in range(needed, to_come + 1))
    return ways / comb(unseen, to_come)


def test_chances_of_draws_are_exact_and_shared_among_rows():
    out = np.empty((3, MOST_OUTS + 1, MOST_NEEDED + 1))
    draw_chances(30, 9, np.array([1.0, 0.5, 0.25]), out)
    for outs in range(MOST_OUTS + 1):
        for needed in range(MOST_NEEDED + 1):
            exact = drawn(outs, 30, 9, needed)
            assert out[:, outs, needed] == pytest.approx([exact, exact * 0.5**needed, exact * 0.25**needed])


def test_chances_of_draws_hold_where_more_cards_come_than_are_unseen():
    out = np.empty((3, MOST_OUTS + 1, MOST_NEEDED + 1))
    draw_chances(2, 3, np.ones(3), out)
    assert out[0, 1].tolist() == [1, 1, 0, 0, 0, 0]


def test_a_flush_needs_the_cards_that_are_unseen():
    four = prospects(BOTTOM, "Ah 9h 5h 2h", to_come=3)
    assert of_kind(four, FLUSH) == pytest.approx(drawn(9, 48, 3))
    assert of_kind(prospects(BOTTOM, "Ah 9h 5h 2h", 3, gone="Kh Qh Jh"), FLUSH) == pytest.approx(drawn(6, 45, 3))
    assert of_kind(prospects(BOTTOM, "Ah 9h 5s 2h", 3), FLUSH) == 0
    assert of_kind(prospects(BOTTOM, "Ah 9h 5h", 6), FLUSH) == pytest.approx(drawn(10, 49, 6, needed=2))


@pytest.mark.parametrize(
    ("cards", "outs"), [("9h 8c 7d 6s", 8), ("9h 8c 7d 5s", 4), ("Ah 2c 3d 4s", 4), ("Ah Kc 3d 4s", 0)]
)
def test_a_straight_counts_the_ranks_that_complete_it(cards, outs):
    assert of_kind(prospects(MIDDLE, cards, to_come=3), STRAIGHT) == pytest.approx(drawn(outs, 48, 3))


def test_two_pairs_fill_up_and_three_of_a_kind_may_become_quads():
    assert of_kind(prospects(BOTTOM, "Ah Ac 3d 3s", 3), FULL_HOUSE) == pytest.approx(drawn(4, 48, 3))
    assert of_kind(prospects(BOTTOM, "Ah Ac 3d 3s", 3, gone="Ad As 3h 3c"), FULL_HOUSE) == 0
    best = next(iter(prospects(BOTTOM, "Ah Ac Ad 3s", 3).values()))
    assert best == pytest.approx(drawn(1, 48, 3))


def test_a_pair_on_top_is_drawn_to_by_rank():
    found = prospects(TOP, "Qh 5c", to_come=3, gone="Qd 5s")
    assert found[(PAIR << CATEGORY) | (12 << 16)] == pytest.approx(drawn(2, 48, 3))
    assert next(iter(found.values())) == found[(PAIR << CATEGORY) | (12 << 16)]
    assert of_kind(prospects(TOP, "Qh 5c", 3, gone="Qd Qs Qc 5s 5d 5h"), PAIR) == 0
    assert of_kind(prospects(TOP, "Qh Qc", 3), TRIPS) == pytest.approx(drawn(2, 50, 3))


def test_an_empty_row_may_still_be_paired():
    for row in (TOP, MIDDLE, BOTTOM):
        assert 0 < of_kind(prospects(row, "", to_come=12), PAIR) < 1


def test_complete_rows_have_one_prospect():
    assert list(prospects(MIDDLE, "Ah Ac 3d 3s 9c").values()) == [1.0]
    assert list(prospects(TOP, "Ah Ac 3d").values()) == [1.0]


def test_jokers_among_the_unseen_cards_help_every_draw():
    cards, rest = "Ah 9h 5h 2h", "Kh 3c 4d 6s 7c 8d Tc Js"
    none = prospects(BOTTOM, cards, 3, unseen=rest)
    one = prospects(BOTTOM, cards, 3, unseen=f"{rest[:-2]} Jo")
    assert of_kind(none, FLUSH) == pytest.approx(drawn(1, 8, 3))
    assert of_kind(one, FLUSH) == pytest.approx(drawn(2, 8, 3))


@pytest.mark.parametrize("row", [TOP, MIDDLE, BOTTOM])
def test_prospects_of_any_row_are_a_distribution(row):
    deck = np.array([*range(54)], np.int8)
    names = [f"{rank}{suit}" for rank in "23456789TJQKA" for suit in "cdhs"] + ["Jo", "Jo"]
    draw = np.random.default_rng(row)
    for _ in range(300):
        count = draw.integers(0, 4 if row == TOP else 6)
        prospects(row, " ".join(names[card] for card in draw.permutation(deck)[:count]), int(draw.integers(1, 5)) * 3)


def test_a_joker_on_top_pairs_with_the_highest_card_that_comes():
    alone = prospects(TOP, "Jo", unseen="As Kd 5c 4c 3c 2c", to_come=2)
    assert alone[PAIR << CATEGORY | 14 << 16] == pytest.approx(1 / 3, abs=0.01), "two of six cards come"
    pair = prospects(TOP, "Jo 2d", unseen="As Kd 5c 4c 3c 7c", to_come=6)
    assert pair[PAIR << CATEGORY | 14 << 16] == pytest.approx(1)
